"""Where in a reply a call may begin: one pattern that finds the openings of every dialect, thinking and code.

The group that matched names the reader, see `parser`. docs/rescue.md has the table of models and formats.
"""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue.variants import Dialect

_NS: Final = r"(?:[|｜][A-Z]{2,12}[|｜] ?|[A-Za-z_]\w*:)?"
_NAME: Final = r"[^\W\d][\w.:/-]{0,127}"
REACT_BEHIND: Final = (
    r"[ \t]{0,40}(?:\([^()\n]{1,80}\)[ \t]{0,40})?\r?\n\s*+Action Input:\s*+(?:\*\*\s*+)?(?=\{)"
)
"""What stands between ReAct's name and its arguments: maybe what the tool does, and marks of bold type."""

_RESULT: Final = r"(?:tool_(?:response|results?|outputs?)|function_(?:response|results?))"

OPENINGS: Final[dict[str, str]] = {
    # Thinking: what stands inside is no call.
    "think": r"<(?:seed:|mm:)?(?:think|thinking|reasoning|thought)>|\[THINK\]|<\|START_THINKING\|>|<\|inner_prefix\|>"
    r"|<\|channel>thought\b|<\|open\|>think<\|sep\|>|◁think▷|to=self<\|message\|>"
    r"|<\|plamo:begin_think:plamo\|>",
    "thought": r"</(?:seed:|mm:)?(?:think|thinking|reasoning|thought)>|\[/THINK\]|<\|END_THINKING\|>|<\|inner_suffix\|>"
    r"|<\|close\|>think<\|sep\|>|◁/think▷|<\|plamo:end_think:plamo\|>",
    # A message to the user, where a format has such, or what a tool is said to have answered: they may show a call.
    "said": rf"<{_RESULT}>|"
    r"to=user<\|message\|>|<\|channel\|>\s*+(?:final|analysis)\s*+(?:<\|constrain\|>\s*+\w+\s*+)?<\|message\|>",
    # Code: what stands inside is shown, except where a whole block is the call.
    "fence": r"(?P<ticks>`{3,12}(?!`)|~{3,12}(?!~))(?P<language>[\w+-]*)[ \t]*\n?",
    # Formats with a name and JSON behind it.
    "mistral": r"\[TOOL_CALLS\]\s*+(?=(?P<mistral_name>" + _NAME + r")\s*+(?:\[CALL_ID\]|\[ARGS\]|\{))",
    "deepseek": r"(?:<[|｜]tool[▁_ ]call[▁_ ]begin[|｜]>(?:function(?:<[|｜]tool[▁_ ]sep[|｜]>|=))?"
    r"|<[|｜]tool[▁_ ]calls[|｜]>\s*+function<[|｜]tool[▁_ ]sep[|｜]>"
    # Without the token of the call, behind that of the section.
    r"|<[|｜]tool[▁_ ]calls[▁_ ]begin[|｜]>(?=\s{0,40}(?!function<)"
    + _NAME
    + r"<[|｜]tool[▁_ ]sep[|｜]>))\s*+"
    r"(?P<deepseek_name>" + _NAME + r")\s*+(?:<[|｜]tool[▁_ ]sep[|｜]>)?\s*+(?:```(?:json)?\s*+)?(?=\{)",
    # Behind the token of a call a plain name is one, too, see `Taker.kimi`.
    "kimi": r"(?:<\|tool_call_begin\|>\s*+|(?<!\w)(?=functions\.[\w.-]{1,118}:\d))"
    r"(?P<kimi_name>[\w.-]{1,128}(?::\d{1,18})?)\s*+<\|tool_call_argument_begin\|>\s*+(?=\{)",
    "harmony": r"(?:<\|channel\|>\s*+\w+\s*+)?\bto=functions\.(?P<harmony_name>[\w.-]{1,128})\s*+"
    r"(?:<\|channel\|>\s*+\w+\s*+)?"
    r"(?:<\|constrain\|>\s*+\w+\s*+|(?:code|json)\b\s*+)?<\|message\|>\s*+(?=\{)",
    # Without the namespace: a call where such a tool is offered, else a tool of the server's own.
    "recipient_only": r"(?:<\|channel\|>\s*+\w+\s*+)?\bto=(?!functions\.)(?P<recipient_only_name>[\w.-]{1,128})\s*+"
    r"(?:<\|channel\|>\s*+\w+\s*+)?(?:<\|constrain\|>\s*+json|\bjson)\s*+<\|message\|>\s*+(?=\{)",
    "gemma": r"<(?:\|tool_call|start_function_call)>\s*+(?:call)?:?\s*+(?!call:)(?P<gemma_name>"
    + _NAME
    + r")\s*+(?=[{(])",
    "all_name": r">>>\s*+(?P<all_name_name>" + _NAME + r")\s*\n(?=\{)",
    "recipient": r"<\|from\|>\s*+assistant\s*+<\|recipient\|>\s*+(?P<recipient_name>" + _NAME + r")\s*+"
    r"<\|content\|>\s*+(?=\{)",
    "qwen_agent": r"✿FUNCTION✿:\s*+(?P<qwen_agent_name>" + _NAME + r")[ \t]*+\r?\n\s*+✿ARGS✿:\s*+(?=\{)",
    "react": r"Action:\s*+(?P<react_name>" + _NAME + r")" + REACT_BEHIND,
    "plamo": r"<\|plamo:begin_tool_name:plamo\|>\s*+(?P<plamo_name>"
    + _NAME
    + r")\s*+<\|plamo:end_tool_name:plamo\|>"
    r"\s*+<\|plamo:begin_tool_arguments:plamo\|>\s*+(?:<\|plamo:constrain\|>\s*+json\s*+<\|plamo:msg\|>)?\s*+(?=\{)",
    # Formats with an element per argument.
    "beam": r"\bto=(?!functions\.)(?P<beam_name>[\w.-]{1,128})\s*+<\|channel\|>\s*+\w+\s*+<\|constrain\|>\s*+xml\s*+"
    r"<\|message\|>(?=\s*+<(?:rfl:parameter\s|\|(?:end|call)\|>))",
    "function": r"<function=(?P<function_name>[^\W\d][\w.:/ -]{0,127})>",
    "invoke": rf"<{_NS}invoke\s++name=[\"']?[ \t]*+(?P<invoke_name>" + _NAME + r")[ \t]*+[\"']?\s*+/?>",
    "param": r"<function[\sĠ]*+name=[\"'](?P<param_name>" + _NAME + r")[\"']\s*+>",
    "kimi3": r"<\|open\|>call\s++tool=\"(?P<kimi3_name>[\w.:/&;#-]{1,128})\"[^<>\n]{0,80}<\|sep\|>",
    "minimax": r"\]<\]minimax\[>\[<invoke name=\"(?P<minimax_name>" + _NAME + r")\">",
    # A wrapper with one or more calls in it, as JSON, Python or a name with keys.
    "wrapper": r"<(?:ifm\||longcat_|iquest_)?(?:tool_calls?|TOOLCALL|function_calls?|tool_use|tools?)>"
    r"|<\|(?:tool_calls?|function_call|tool_call_start|python_start|tools_prefix|START_ACTION|python_tag)\|>"
    r"|<tool_calls?:\w{1,40}>|<\|action_start\|>\s*+<\|plugin\|>|\[TOOL_CALLS?\]|\[TOOL_REQUEST\]|functools(?=\[)"
    r"|function call<\|role_sep\|>|Action:\s*+```json",
    # What a model writes that was shown calls as text.
    "calling": r"\[Calling\s++tool(?::\s*+(?P<calling_name>" + _NAME + r")\s*+\(\s*+(?=\{)"
    r"|=\"(?P<calling_keyed>" + _NAME + r")\"(?=[\s\]]))",
    # JSON and Python without any wrapper.
    "brace": r"\{(?=\s*+(?:[\"'“][^\"'“”\\\n{}]{0,64}+[\"'”]|[A-Za-z_]\w{0,64}+)\s*+:)",
    "bracket": r"\[(?=\s*+(?:\{|[A-Za-z_][\w.-]{0,127}\())",
}
"""Readers by name, and the pattern of what opens them. White space is possessive: no run of it is shared out anew."""

FAMILIES: Final[dict[str, Dialect]] = {
    "mistral": "mistral", "deepseek": "tokens", "kimi": "tokens", "harmony": "tokens", "gemma": "tokens",
    "recipient_only": "tokens", "plamo": "tokens", "beam": "markup", "tag": "markup",
    "all_name": "tokens", "recipient": "tokens", "react": "tokens", "qwen_agent": "tokens", "function": "markup",
    "invoke": "markup", "param": "markup", "kimi3": "markup", "minimax": "markup", "calling": "tokens",
    "wrapper": "hermes", "brace": "json", "bracket": "json",
}  # fmt: skip
"""Which family of `RescueRules.dialects` a reader belongs to. Thinking and code are always known."""

TAG: Final = re.compile(r"(?P<tag><(?P<tag_name>[A-Za-z_]\w{0,127}+)>)(?=\s{0,40}</?[A-Za-z_])")
"""A tag that is a call where it is an offered tool's name. HTML is full of others, so that it is looked for apart."""
CODE: Final = re.compile(r"``(?!`)[^`\n]++``(?!`)|(?<!`)`(?!`)[^`\n]*+`(?!`)")
"""Code on a line."""
OPENING: Final = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in OPENINGS.items()))
_NO_GROUPS: Final = "|".join(re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in OPENINGS.values())
_STARTS: Final = r"<{\[`~\]>◁✿tfA"
"""The characters with which openings begin."""
_NO_START: Final = rf"[^{_STARTS}]++"
_PLAIN: Final = "|".join(
    (
        _NO_START,
        r"`{13,}+|~{13,}+|~{1,2}+(?!~)",
        # Code on a line is prose as well.
        r"``(?!`)[^`\n]++``(?!`)|``(?!`)",
        r"`(?!`)[^`\n]*+`(?!`)|`(?!`)",
        # What the commonest characters begin when they begin nothing, said once more for speed.
        r"<(?![|｜/A-Za-z_])|<\|(?![A-Za-z/])|</(?!(?:seed:|mm:)?[tr])",
        r"\{(?!" + OPENINGS["brace"].removeprefix(r"\{") + ")",
        r"\[(?!\s*+[{A-Za-z_/])|\](?!<)|>(?!>)|t(?!o=)|f(?!unct)|A(?!ction:)",
        rf"(?![`{{])(?!{_NO_GROUPS})[{_STARTS}]",
        # Once more: Python before 3.11.5 goes on where the last alternative failed, not where the repetition stood.
        _NO_START,
    )
)
PROSE: Final = re.compile(rf"(?:{_PLAIN})*+")
"""Everything up to the next opening. Possessive throughout: a character is looked at once, whatever comes."""

SAID_ENDS: Final = re.compile(r"<\|(?:eom|eot|end|return|start)\|>")
RESULT_ENDS: Final = re.compile(rf"</{_RESULT}>")
"""What ends a tool's answer; a reply that has one made it up, and it ends with the reply at the latest."""
MUSE_SAID_ENDS: Final = re.compile(r"<\|(?:eom|eot)\|>")
"""Muse's messages may quote the beginning of another one."""
ANALYSIS_ENDS: Final = re.compile(SAID_ENDS.pattern + r"|(?=<\|channel\|>)")
"""Thinking that is not ended itself ends where the next channel begins."""
THINK_ENDS: Final = re.compile(OPENINGS["thought"] + r"|<channel\|>|<\|eom\|>")
SECTION: Final = re.compile(
    r"<\|plamo:begin_tool_requests:plamo\|>|<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>|<[|｜]tool[▁_]calls[▁_]begin[|｜]>"
    r"|<\|tool_call>call:"
)
"""Tokens that end thinking which nothing else ends: no model writes them by the way."""
NOISE: Final = re.compile(
    r"<\|plamo:(?:(?:begin|end)_tool_\w+:plamo|tag)\|>|<\|(?:open|close)\|>(?:tools|message|response)<\|sep\|>"
    r"|</?(?:ifm\||longcat_|minimax:|seed:|atem:|steptml:|iquest_|[|｜][A-Z]{2,12}[|｜] ?)?"
    r"(?:tool_calls?|TOOLCALL|function_calls?|tool_use|dots_function_call|tools?|calls?|function|response|answer)>|<\|/?(?:tool_calls?|python_start|python_end|python_tag"
    r"|tool_call_start|tool_call_end|tool_calls_section_begin|tool_calls_section_end|tools_prefix|tools_suffix"
    r"|START_ACTION|END_ACTION|action_start|action_end|plugin|function_call|message_sep|role_sep|call|end|eom|eot|eot_id"
    r"|im_end|START_RESPONSE|END_RESPONSE|open|close|sep|role_end|tool_call_begin)\|>"
    r"|<[|｜]tool[▁_ ]calls?[▁_ ](?:begin|end)[|｜]>"
    r"|<tool_call\|>|<\|tool_call>|<end_function_call>|</?tool_calls?:\w{1,40}>|<end_of_tool_calls?(?::\w{1,40})?>|\[TOOL_CALLS?\]|\[(?:END_)?TOOL_REQUEST(?:_END)?\]|\]<\]minimax\[>\[</?tool_call>"
    r"|<\|start\|>(?:assistant\b)?|<\|channel\|>\s*(?:final|commentary)\s*<\|message\|>|<\|return\|>"
    r"|✿(?:RESULT|RETURN)✿:?"
)
"""Tokens of the formats that say nothing by themselves; they are left out of a reply's text."""
EXAMPLE: Final = re.compile(
    r"(?i)\b(?:for example|an example|example of|example call|e\.g\.|for instance|looks? like|would look"
    r"|(?:do(?:es)? not|don['’]t|never|instead of) (?:call|write|use|send))"
)
"""Words right before bare JSON or a block of code that make it an illustration."""
CLOSER: Final = re.compile(
    r"(?:<\|plamo:end_tool_\w+:plamo\|>"
    r"|</[\w:|｜ -]{0,40}(?:tool|function|TOOLCALL|call)[\w:|｜-]{0,40}>|<\|?/[\w|]+\|?>"
    r"|<\|[\w|▁]*(?:end|END|suffix)[\w|▁]*\|>"
    r"|<tool_call\|>|<end_function_call>|<end_of_tool_call(?::\w{1,40})?>|<[|｜][\w▁ ]*end[|｜]>|\[/\w+\]"
    r"|\[(?:END_TOOL_REQUEST|TOOL_REQUEST_END)\]|```)"
)
"""What closes a call in some format."""
CLOSERS: Final = re.compile(r"\s*+" + CLOSER.pattern)
"""The same behind white space. To be matched: a search would go through the white space again from each of it."""
