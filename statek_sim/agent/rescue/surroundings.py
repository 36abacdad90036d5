"""Recognizes the text around calls: code, thinking, other speakers' messages, wrappers, and quoted calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Final

from statek_sim.agent.rescue import elements
from statek_sim.agent.rescue.call_parser import CallParser, Found
from statek_sim.agent.rescue.calls import PYTHON_CALL
from statek_sim.agent.rescue.formats import CHANNEL, CHANNEL_ENDS, THINK
from statek_sim.agent.rescue.json_reader import Style
from statek_sim.agent.rescue.offered_tools import NAME
from statek_sim.agent.rescue.work_budget import Broken

_THINK_ENDS_OF: Final = {
    "[THINK]": r"\[/THINK\]", "<|START_THINKING|>": r"<\|END_THINKING\|>",
    "<|channel>thought": r"<channel\|>", "◁think▷": "◁/think▷",
}  # fmt: skip


def think_ends(opening: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern that closes thinking opened by `opening` (a match of `THINK` or `CHANNEL`)."""
    if opening.re is CHANNEL:
        return CHANNEL_ENDS
    token = opening.group()
    return re.compile(_THINK_ENDS_OF.get(token) or f"</(?:seed:|mm:)?{token[1:-1].rpartition(':')[2]}>")


_THOUGHT: Final = re.compile(
    r"(?i:<\s{0,4}(?P<ends>/?)\s{0,4}(?:\w{1,20}:)?(?:think|thinking|reasoning|thoughts?|scratchpad|analysis|reflection)\b"
    r"[^<>]{0,40}>)"
)
"""Matches thinking tags, including ones that no model was trained to write."""
_OTHERS: Final = re.compile(
    r"<\|(?:im_start|start|start_header_id)\|>(?=\w)(?!assistant)|<tool_(?:response|output|result)s?>"
    r"|<[|｜]tool[▁_ ]outputs?[▁_ ]begin[|｜]>"
)
"""Matches the start of a message that is not the model's; calls inside are not the model's either."""


def thinks_at_end(text: str, start: int, end: int) -> bool:
    """Return whether thinking that opens after `start` is still open at `end`."""
    tags = [tag["ends"] for tag in _THOUGHT.finditer(text, start, end)]
    if tags and not tags[-1]:
        return True
    last: re.Match[str] | None = None
    for pattern in (THINK, CHANNEL):
        for opening in pattern.finditer(text, start, end):
            if last is None or opening.start() > last.start():
                last = opening
    return last is not None and think_ends(last).search(text, last.end(), end) is None


_FENCE_LINE: Final = re.compile(r"^[ \t]*+(?P<mark>`{3,}+|~{3,}+)(?P<rest>[^\n]*+)", re.MULTILINE)


def in_code(text: str, start: int, end: int) -> bool:
    """Return whether `end` may be inside a code block that opens after `start`, however its markers are read."""
    mark = ""
    for line in _FENCE_LINE.finditer(text, start, end):
        here = line["mark"]
        if not mark:
            mark = here
        elif here.startswith(mark) and not line["rest"].strip():
            mark = ""
    return mark != "" or text.count("```", start, end) % 2 == 1


def stands_in_another(text: str, start: int, end: int) -> bool:
    """Return whether `end` may be in code, thinking or another speaker's message that starts after `start`."""
    return (
        in_code(text, start, end)
        or thinks_at_end(text, start, end)
        or _OTHERS.search(text, start, end) is not None
    )


def quoted_end(text: str, closing: re.Match[str]) -> bool:
    """Return whether the tag that ends thinking and the text after it are in a code block."""
    shut = any(text.find(mark, closing.end()) >= 0 for mark in ("```", "~~~"))
    return shut and in_code(text, 0, closing.start())


# Calls that are only quoted in a text

_HINTS: Final = ("{", "<", "[", "✿", "Action:", ">>>", "functions.", "call:")
"""A text that contains none of these strings contains no call."""
_TOKEN: Final = re.compile(
    r"<(?:\|?(?:tool|start_function|ifm|longcat|iquest)|[\w:|｜ ]{0,20}(?:function|invoke|tool|call)|\||｜)"
    r"|\[TOOL_|\[Calling tool|functools\[|✿FUNCTION✿|Action:|>>>|functions\.|\bto=|\]<\]minimax|call:"
)
_NEAR: Final = 80
_MOST_TOKENS: Final = 200


def shown_call(text: str, tools: Iterable[str] | None) -> str | None:
    """Return the name of an offered tool whose call appears in `text`, or None. If `tools` is None, any name counts.

    A call appears if a name closely follows a format's token, if JSON contains the name and arguments, or if a list of
    Python calls starts with the name. Only the first 200 tokens are checked.
    """
    if not any(hint in text for hint in _HINTS):
        return None
    names = None if tools is None else tuple(sorted(tools))
    if names == ():
        return None
    listed, near = _shown(names)
    found = listed.search(text)
    if found is not None:
        return found["json"] or found["python"] or found["tag"]
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        name = near.search(text, token.end(), token.end() + _NEAR)
        if name is not None:
            return name.group()
    return None


@lru_cache(maxsize=64)
def _shown(names: tuple[str, ...] | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns for a call without a token, and for a name after a token."""
    name = r"[^\W\d][\w.-]{2,127}" if names is None else "|".join(map(re.escape, names))
    unnamed = "(?!)" if names is None else name
    quote = r"[\"'“”`\\]{0,3}"
    listed = re.compile(
        rf"{quote}\b(?:name|tool_name|function_name|tool|function|recipient_name|action){quote}\s{{0,8}}:\s{{0,8}}"
        rf"{quote}(?P<json>{name}){quote}\s{{0,8}},\s{{0,8}}"
        rf"{quote}(?:arguments|parameters|args|input|params|tool_input|action_input){quote}\s{{0,8}}:\s{{0,8}}{quote}\{{"
        rf"|\[\s{{0,8}}(?P<python>{unnamed})\s?\((?=[\w)])"
        rf"|<(?P<tag>{unnamed})>\s{{0,8}}<"
    )
    return listed, re.compile(rf"(?<![\w-])(?:{name})(?![\w-])")


_SEPARATOR: Final = re.compile(r"[\s,;]*+")
_NAMED: Final = re.compile(rf"\s*(?P<name>{NAME.pattern})(?:\s|\\n)*+(?P<behind>\{{|<arg_key>|</tool_call>)")
_OUTER: Final = re.compile(r"<tool_calls>\s{0,40}\Z")
_NESTED_WITHIN: Final = 100
_TOKENS: Final = ("[TOOL_", "[/")
"""How bracketed tokens start, to distinguish them from lists."""


class Wrapper:
    """Parses the calls in a wrapper opened by the token `opening`."""

    def __init__(self, parser: CallParser, opening: re.Match[str]) -> None:
        self.parser = parser
        self.text = parser.text
        self.opening = opening
        self.dialect = _label(opening.group())

    def read(self) -> int:
        """Parse the calls in the wrapper; return the end of the last call, or of the token if there are none."""
        at, parser, start = self.opening.end(), self.parser, self.opening.start()
        while len(parser.found) <= parser.limits.max_calls:
            parser.budget.token(at)
            here = _SEPARATOR.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            parser.budget.steps += here - at
            end = self._one(here, start)
            if end is None:
                break
            at = start = end
        return at

    def _one(self, at: int, start: int) -> int | None:
        """Parse one item in the wrapper and return its end position, or None if there is no item."""
        text, parser = self.text, self.parser
        if text.startswith(_TOKENS, at):
            return None  # another call begins, or thinking ends
        if text.startswith("[", at) and PYTHON_CALL.match(text, at + 1):
            return parser.python(at + 1, self.dialect, start, bracket=True)
        if text.startswith(("{", "["), at):
            return self._json(at, start)
        if PYTHON_CALL.match(text, at):
            return parser.python(at, self.dialect, start, bracket=False)
        return self._named(at, start)

    def _json(self, at: int, start: int) -> int:
        """Parse the calls in a JSON value."""
        value, end, repairs = self.parser.json(at, Style())
        if "closed_brackets" in repairs and end >= len(self.text):
            raise Broken(end, "the reply ends inside the call", cut=True)
        calls = self.parser.calls_in(value, wrapped=True)
        if calls is None:
            raise Broken(at, "the wrapper contains JSON, but not a call with a name and arguments")
        return self.parser.take(calls, (self.dialect, *repairs), start, end)

    def _named(self, at: int, start: int) -> int | None:
        """Parse a call written as a name followed by JSON or keys."""
        named = _NAMED.match(self.text, at)
        if named is None:
            return None
        name, behind = named["name"], named["behind"]
        if name.startswith("call:"):
            raise Broken(at, "a call in Gemma's format, whose token is damaged")
        if behind.startswith("</") and not (self.dialect.endswith("tool_call") and self._is_name(name)):
            return None
        if behind.endswith("{"):
            one = self.parser.arguments(named.end() - 1, name, self.dialect, start)
        else:
            arguments, end = elements.read_elements(
                self.text, named.end("name"), elements.KEYS, self.parser.budget
            )
            one = Found(name, arguments, (self.dialect, "keys"), start, end)
        self.parser.found.append(one)
        return one.end

    def _is_name(self, word: str) -> bool:
        """Return whether a single word is a call without arguments.

        It is a call if such a tool is offered. If any name is accepted, a word that looks like an identifier is a call,
        except in a double wrapper, which parsers read differently.
        """
        offered = self.parser.offered
        if word in offered.schemas:
            return True
        start = self.opening.start()
        twice = _OUTER.search(self.text, max(0, start - _NESTED_WITHIN), start) is not None
        return offered.anything and "_" in word.strip("_") and not twice


def _label(token: str) -> str:
    word = re.sub(r"\W+", "_", token).strip("_").lower()
    return "functools" if word.startswith("functools") else word
