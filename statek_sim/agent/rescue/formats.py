"""The formats in which models write calls: the patterns that open and close a call, and which models use each format.

`OPENINGS` has a row per format: its reader in `parser.READERS` and the pattern that opens it. A pattern is matched only
where a call may begin, never in the middle of a line. docs/rescue.md has a table of the formats. If the model's format
is known, text may precede a call, provided that the call starts a line with one of the format's tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

_NS: Final = r"(?:[|｜][A-Z]{2,12}[|｜] ?|[A-Za-z_]\w*:)?"
_NAME: Final = r"[^\W\d][\w.:/-]{0,127}"
REACT_BEHIND: Final = r"[ \t]{0,40}(?:\([^()\n]{1,80}\)[ \t]{0,40})?\r?\n\s*+Action Input:\s*+(?:\*\*\s*+)?"
"""Text between ReAct's name and arguments, such as a description of the tool, and bold markers."""

OPENINGS: Final[dict[str, str]] = {
    # A name followed by JSON.
    "mistral": rf"(?:\[TOOL_CALLS\]\s*+(?=(?:{_NAME})\s*+(?:\[CALL_ID\]|\[ARGS\]|\{{))"
    # A server may strip the first token because it is a special token.
    rf"|(?=(?:{_NAME})\s{{0,8}}(?:\[CALL_ID\]\s{{0,8}}[\w-]{{0,128}}\s{{0,8}})?\[ARGS\]))(?P<mistral_name>{_NAME})",
    "kimi": r"(?:<\|tool_call_begin\|>\s*+|(?=functions\.[\w.-]{1,118}:\d))"
    r"(?P<kimi_name>[\w.-]{1,128}(?::\d{1,18})?)\s*+<\|tool_call_argument_begin\|>\s*+",
    "deepseek": r"(?:<[|｜]tool[▁_ ]call[▁_ ]begin[|｜]>(?:function(?:<[|｜]tool[▁_ ]sep[|｜]>|=))?"
    r"|<[|｜]tool[▁_ ]calls[|｜]>\s*+function<[|｜]tool[▁_ ]sep[|｜]>"
    # Without the call's token, after the section's token.
    rf"|<[|｜]tool[▁_ ]calls[▁_ ]begin[|｜]>(?=\s{{0,40}}(?!function<){_NAME}<[|｜]tool[▁_ ]sep[|｜]>))\s*+"
    rf"(?P<deepseek_name>{_NAME})\s*+(?:<[|｜]tool[▁_ ]sep[|｜]>)?\s*+(?:```(?:json)?\s*+)?",
    "harmony": r"(?:<\|channel\|>\s*+\w+\s*+)?to=functions\.(?P<harmony_name>[\w.-]{1,128})\s*+"
    r"(?:<\|channel\|>\s*+\w+\s*+)?(?:<\|constrain\|>\s*+\w+\s*+|(?:code|json)\b\s*+)?<\|message\|>\s*+",
    # Without the namespace: a call if such a tool is offered, otherwise one of the server's own tools.
    "recipient_only": r"(?:<\|channel\|>\s*+\w+\s*+)?to=(?!functions\.)(?P<recipient_only_name>[\w.-]{1,128})\s*+"
    r"(?:<\|channel\|>\s*+\w+\s*+)?(?:<\|constrain\|>\s*+json|\bjson)\s*+<\|message\|>\s*+",
    "gemma": r"(?:<(?:\|tool_call|start_function_call)>\s*+(?:call)?:?\s*+(?!call:)|call:)"
    rf"(?P<gemma_name>{_NAME})\s*+(?=[{{(])",
    "react": rf"Action:\s*+(?P<react_name>{_NAME}){REACT_BEHIND}",
    # One element per argument.
    "function": r"<function=(?P<function_name>[^\W\d][\w.:/ -]{0,127})>",
    "invoke": rf"<{_NS}invoke\s++name=[\"']?[ \t]*+(?P<invoke_name>{_NAME})[ \t]*+[\"']?\s*+/?>",
    "param": rf"<function[\sĠ]*+name=[\"'](?P<param_name>{_NAME})[\"']\s*+>",
    # A wrapper around one or more calls, as JSON, Python or a name with keys.
    "wrapper": r"<(?:tool_calls?|TOOLCALL|function_calls?|tool_use|tools?)>"
    r"|<\|(?:tool_calls?|function_call|tool_call_start|python_start|START_ACTION|python_tag)\|>"
    r"|\[TOOL_CALLS?\]|\[TOOL_REQUEST\]|functools(?=\[)|Action:\s*+```json",
    # A tag that is a tool's name, a code block, or JSON and Python without a wrapper.
    "tag": r"<(?P<tag_name>[A-Za-z_]\w{0,127}+)>(?=\s{0,40}</?[A-Za-z_])",
    "code": rf"```tool_code[ \t]*\n\s{{0,40}}(?=\[?\s{{0,8}}{_NAME}\s{{0,8}}\()",
    "brace": r"\{(?=\s*+(?:[\"'“][^\"'“”\\\n{}]{0,64}+[\"'”]|[A-Za-z_]\w{0,64}+)\s*+:)",
    "bracket": r"\[(?=\s*+(?:\{|[A-Za-z_][\w.-]{0,127}\())",
    "python": r"(?=(?P<python_name>[^\W\d][\w.-]{0,127})\s{0,8}\()",
}
"""The patterns that open a call, keyed by the name of their reader in `parser.READERS`."""
OPENING: Final = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in OPENINGS.items()))
UNNAMED: Final = frozenset(("tag", "code", "brace", "bracket", "python"))
"""Readers for formats without tokens of their own; no text may precede their calls."""

THINK: Final = re.compile(
    r"<(?:seed:|mm:)?(?:think|thinking|reasoning|thought)>|\[THINK\]|<\|START_THINKING\|>"
    r"|<\|channel>thought\b|◁think▷"
)
THINK_ENDS: Final = re.compile(
    r"</(?:seed:|mm:)?(?:think|thinking|reasoning|thought)>|\[/THINK\]|<\|END_THINKING\|>"
    r"|◁/think▷|<channel\|>"
)
CHANNEL: Final = re.compile(r"<\|channel\|>\s*+(?:analysis|commentary)\s*+<\|message\|>")
"""Matches the start of thinking in Harmony, and the start of messages to the user before a call."""
CHANNEL_ENDS: Final = re.compile(r"<\|(?:end|return)\|>")

_CALL_MARK: Final = (
    r"</?(?:minimax:|seed:|[|｜][A-Z]{2,12}[|｜] ?)?"
    r"(?:tool_calls?|TOOLCALL|function_calls?|tool_use|tools?|calls?|function)>"
    r"|<\|/?(?:tool_calls?|python_start|python_end|python_tag|tool_call_start|tool_call_end|tool_calls_section_begin"
    r"|tool_calls_section_end|START_ACTION|END_ACTION"
    r"|function_call|call|tool_call_begin)\|>"
    r"|<[|｜]tool[▁_ ]calls?[▁_ ](?:begin|end)[|｜]>|<tool_call\|>|<\|tool_call>|<start_function_call>"
    r"|<end_function_call>|\[TOOL_CALLS?\]|\[(?:END_)?TOOL_REQUEST(?:_END)?\]"
)
CALL_MARK: Final = re.compile(_CALL_MARK)
"""Matches tokens around calls that mean nothing by themselves."""
MESSAGE_MARK: Final = re.compile(
    r"<\|(?:end|eom|eot|eot_id|im_end|return|START_RESPONSE|END_RESPONSE)\|>|</s>"
    r"|<\|start\|>(?:assistant\b)?|<[|｜]end▁of▁sentence[|｜]>"
)
"""Matches tokens around messages."""
FENCE: Final = re.compile(
    r"(?!```tool_code)"
    r"(?i:```(?:json5?|jsonc|javascript|js|tool_calls?|tool_code|tool|python|xml)?[ \t]*+(?:\r?\n|\Z)|```)"
)
"""Matches a line that opens or closes a code block; if a block makes up the whole reply, its contents are parsed."""
SPACE: Final = re.compile(r"[\s\ufeff,;]*+")
"""Matches the text that may be between calls."""
CLOSER: Final = re.compile(
    r"(?:</(?![\w:|｜ -]{0,80}(?:response|result|output)s?>)[\w:|｜ -]{0,40}"
    r"(?:tool|function|TOOLCALL|call)[\w:|｜-]{0,40}>"
    r"|</(?:arguments|parameters?|args|params?|input|invoke|s)>|<\|/\w{1,40}\|>"
    r"|<\|(?!END_THINKING)[\w|▁]{0,40}(?:end|END|suffix)[\w|▁]{0,40}\|>"
    r"|<tool_call\|>|<end_function_call>|<[|｜][\w▁ ]*end[|｜]>"
    r"|\[/(?:[A-Z_]{0,20}TOOL\w{0,20}|ARGS|INST)\]"
    r"|\[(?:END_TOOL_REQUEST|TOOL_REQUEST_END)\]|```)"
)
"""Matches tokens that close a call in any format."""
CLOSERS: Final = re.compile(r"\s*+" + CLOSER.pattern)
"""Matches white space and a closing token. Searching with it would be slow in long white space."""


def closed(text: str, at: int) -> int:
    """Return the position after the closing token at `at`, or `at` if there is none."""
    closer = CLOSERS.match(text, at)
    return at if closer is None else closer.end()


@lru_cache(maxsize=64)
def line_opening(readers: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern for lines that start with one of these readers' tokens; the match ends before the token.

    A line indented by four spaces or a tab is a Markdown code block.
    """
    ungrouped = (re.sub(r"\(\?P<\w+>", "(?:", OPENINGS[name]) for name in sorted(readers - UNNAMED))
    opens = "|".join((_CALL_MARK, *ungrouped))
    return re.compile(rf"^ {{0,3}}+(?=(?:<\|start\|>\s*+assistant\s*+)?(?:{opens}))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A call format. `readers` are names in `OPENINGS`; `models` are prefixes of the names of models that use it."""

    name: str
    readers: frozenset[str]
    models: tuple[str, ...] = ()


def _dialect(name: str, *readers: str, models: str = "") -> Dialect:
    return Dialect(name, frozenset(readers), tuple(models.split()))


DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        _dialect("cline"),
        _dialect("cohere", "wrapper", models="command c4ai-command"),
        _dialect("deepseek", "deepseek", "invoke", models="deepseek"),
        _dialect("functionary", "function", models="functionary"),
        _dialect("functools", "wrapper", models="phi"),
        _dialect("gemma", "gemma", models="gemma functiongemma"),
        _dialect("glm", "wrapper", models="glm"),
        _dialect("harmony", "harmony", "recipient_only", models="gpt-oss"),
        _dialect("hermes", "wrapper", models="hermes qwen2.5 qwen3 qwq"),
        _dialect("json"),
        _dialect("kimi", "kimi", models="kimi"),
        _dialect("lfm2", "wrapper", models="lfm"),
        _dialect("llama", "wrapper", "function", models="llama meta-llama"),
        _dialect("minimax", "wrapper", "invoke", models="minimax"),
        _dialect("mistral", "wrapper", "mistral", models="mistral ministral magistral devstral mixtral"),
        _dialect("olmo", "wrapper", models="olmo"),
        _dialect("python"),
        _dialect("qwen-coder", "wrapper", "function", "param", models="qwen3-coder qwen3.5 seed-oss"),
        _dialect("react", "react", "wrapper"),
        _dialect("tool_calls", "wrapper", models="jamba hunyuan nemotron"),
    )
}
"""The formats, keyed by name. `hermes` includes Qwen 2.5 and 3; `tool_calls` is for Jamba, Hunyuan and others."""


def dialect_called(name: str | None) -> Dialect | None:
    """Return the dialect with this name, or None if `name` is None; raises `BadInput` for an unknown name."""
    if name is not None and name not in DIALECTS:
        raise BadInput(
            f"unknown dialect {name!r}; expected one of {', '.join(DIALECTS)}.{suggestion(name, DIALECTS)}"
        )
    return None if name is None else DIALECTS[name]


def dialect_of(model: str) -> str | None:
    """Return the dialect for a model name, such as `qwen-coder` for `qwen/Qwen3-Coder-30B`, or None if it is unknown.

    The longest matching prefix of the last part of the name wins.
    """
    name = model.rpartition("/")[2].lower()
    known = [
        (len(begins), dialect.name)
        for dialect in DIALECTS.values()
        for begins in dialect.models
        if name.startswith(begins)
    ]
    return max(known)[1] if known else None
