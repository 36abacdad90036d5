"""Taking the calls inside a wrapper: `<tool_call>`, `[TOOL_CALLS]`, `functools` and their like.

A wrapper holds JSON, a list of it, Python, or names with keys. What was complete stays, whatever follows; what cannot
be read and can be seen to end is refused by itself.
"""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue import markup, nested
from statek_sim.agent.rescue.brackets import closed, nothing_more
from statek_sim.agent.rescue.extent import extent
from statek_sim.agent.rescue.meter import Broken
from statek_sim.agent.rescue.offered import NAME
from statek_sim.agent.rescue.openings import CLOSERS
from statek_sim.agent.rescue.pythonic import PYTHON_CALL
from statek_sim.agent.rescue.reader import CALL_STYLE, Style
from statek_sim.agent.rescue.taking import Found, Taker
from statek_sim.agent.rescue.values import Reason

_VERSION: Final = r"(?::\w{1,40})?"
_SEPARATOR: Final = re.compile(r"[\s,;]*")
_NAMED: Final = re.compile(
    rf"\s*(?P<name>{NAME.pattern})(?:\s|\\n)*+(?P<behind>(?:<tool_sep{_VERSION}>\s*)?\{{|<tool_sep{_VERSION}>"
    rf"|<(?:ifm\|)?arg_key{_VERSION}>|</(?:ifm\||longcat_|iquest_)?tool_call{_VERSION}>|<end_of_tool_call{_VERSION}>)"
)
_OUTER: Final = re.compile(rf"<(?:ifm\|)?tool_calls{_VERSION}>\s{{0,40}}\Z")
_NEAR: Final = 100
_CLOSES: Final = re.compile(r"<[^|｜]")
"""How tokens begin that have a closing one, which models write."""
_WORDS: Final = re.compile(r"\s{0,40}[^\W\d_][\w'’-]{0,40}+(?:[ \t]{1,4}[^\W\d_]|[.,!?。，！？])")
_MISTRAL: Final = "[TOOL_CALL"
_TAGGED: Final = re.compile(
    rf"\s*<(?P<tag>name|tool_name|tool)>\s{{0,40}}(?P<name>{NAME.pattern})\s{{0,40}}</(?P=tag)>\s{{0,40}}"
    r"<(?P<key>arguments|parameters|input|args|params)>\s{0,40}(?=\{|</?[A-Za-z_])"
)


class Wrapper:
    """The wrapper whose token `opening` is. Prose behind the token is prose."""

    def __init__(self, taker: Taker, opening: re.Match[str]) -> None:
        self.taker = taker
        self.text = taker.text
        self.opening = opening
        self.dialect = _label(opening.group())
        self.style = Style(shorthand="prefix" in opening.group(), meant=True)

    def read(self) -> int:
        """Take the calls in the wrapper, and return where the last one ends."""
        at, taken, taker = self.opening.end(), False, self.taker
        while len(taker.found) <= taker.limits.max_calls:
            taker.meter.token(at)
            here = _SEPARATOR.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            taker.meter.steps += here - at
            end = self._one(here, here if taken else self.opening.start())
            if end is None:
                break
            at, taken, taker.sure = end, True, len(taker.found)
        return at

    def _one(self, at: int, start: int) -> int | None:
        """Take one item of the wrapper, and return where it ends; None: what stands there is none."""
        if self.text.startswith(_MISTRAL, at):
            return None  # another format begins: this token opened nothing
        if self.text.startswith("[", at) and PYTHON_CALL.match(self.text, at + 1):
            return self.taker.python(at + 1, self.dialect, start, bracket=True)
        if self.text.startswith("[", at):
            return self._list(at, start)
        if self.text.startswith("{", at):
            return self._closed(self._item(at, start))
        if (tagged := _TAGGED.match(self.text, at)) is not None:
            return self._tagged(tagged, start)
        if PYTHON_CALL.match(self.text, at):
            return self.taker.python(at, self.dialect, start, bracket=False)
        expected = self.taker.hint is None or self.taker.hint.keys
        return self._named(at, start) if expected and "keys" in self.taker.rules.dialects else None

    def _closed(self, end: int) -> int:
        """Return the place behind a call that ends at `end`, and what closes it. Raises `Broken` for words there."""
        behind = closed(self.text, end)
        if behind == end and _CLOSES.match(self.opening.group()) and _WORDS.match(self.text, end):
            raise Broken(end, "words behind a call whose wrapper is not closed")
        return behind

    def _named(self, at: int, start: int) -> int | None:
        """Take a call that is a name with JSON or with keys behind it."""
        named = _NAMED.match(self.text, at)
        if named is None:
            return None
        if named["name"].startswith("call:"):
            raise Broken(at, "a call in Gemma's format, whose token is damaged")
        if named["behind"].startswith(("</", "<end")):
            # A word and nothing else: a call without arguments to a tool that was offered, or text. Where any name is
            # accepted, one that only programs have is a call, and in two wrappers parsers of others are divided.
            offered = self.taker.offered
            meant = named["name"] in offered.schemas or self.taker.hint is not None
            meant = meant or (
                offered.anything and "_" in named["name"].strip("_") and not self._wrapped_twice()
            )
            if not meant or not self.dialect.endswith("tool_call"):
                return None
        if named["behind"].endswith("{"):
            one = self.taker.arguments(named.end() - 1, named["name"], self.dialect, start, CALL_STYLE)
            self._closed(one.end)
        else:
            arguments, end = markup.read_elements(self.text, named.end("name"), markup.KEYS, self.taker.meter)
            one = Found(named["name"], arguments, (self.dialect, "keys"), start, end)
        self.taker.found.append(one)
        return one.end

    def _wrapped_twice(self) -> bool:
        """Whether the token stands right behind another wrapper's: `<tool_calls><tool_call>`."""
        start = self.opening.start()
        return _OUTER.search(self.text, max(0, start - _NEAR), start) is not None

    def _tagged(self, tagged: re.Match[str], start: int) -> int:
        """Take a call with its name and its arguments in an element each."""
        if self.text.startswith("<", tagged.end()):
            style = nested.NAMED[tagged["key"]]
            end = self.taker.plain_elements(
                tagged["name"], (self.dialect, "elements"), start, tagged.end(), style
            )
            self.taker.found[-1].end = self._closed(end)
            return self.taker.found[-1].end
        one = self.taker.arguments(tagged.end(), tagged["name"], self.dialect, start, CALL_STYLE)
        behind = re.compile(rf"\s{{0,40}}</{tagged['key']}>").match(self.text, one.end)
        if (
            behind is None
            and f"</{tagged['key']}>" != self.text[: one.end].rstrip()[-len(tagged["key"]) - 3 :]
        ):
            rest = self.text[one.end : one.end + 40].strip()
            raise Broken(one.end, "the arguments are not closed", cut=not rest)
        one.end = self._closed(one.end if behind is None else behind.end())
        self.taker.found.append(one)
        return one.end

    def _list(self, at: int, start: int) -> int:
        """Take the calls of a JSON list, one by one."""
        found, reader, text = self.taker.found, self.taker.reader(self.style), self.text
        first, here, comma = len(found), at + 1, True
        repairs: dict[str, None] = {}
        while True:
            self.taker.meter.token(here)
            here = reader.space(here)
            if text.startswith("]", here):
                here += 1
                break
            if text.startswith("{", here) and not comma:
                repairs["missing_commas"] = None
            elif not comma or not text.startswith(("{", "["), here):
                self._may_end(here, any_taken=len(found) > first)
                repairs["closed_brackets"] = None
                break
            here = reader.space(self._item(here, here if len(found) > first else start))
            self.taker.sure = len(found)
            if len(found) > self.taker.limits.max_calls:
                return here
            comma = text.startswith(",", here)
            here += comma
        self.taker.sure = first  # words behind the list refuse all of it
        end = self._closed(here)
        for one in found[first:]:
            one.stages, one.end = (*one.stages, *repairs, *reader.repairs), max(one.end, end)
        return end

    def _may_end(self, at: int, *, any_taken: bool) -> None:
        """Refuse a list that does not go on at `at`, unless the reply or the wrapper ends there."""
        ends = at >= len(self.text) or CLOSERS.match(self.text, at) is not None
        if not ends or not any_taken:
            why = f"{self.text[at : at + 12]!r} in a list of calls"
            raise Broken(at, why, cut=at >= len(self.text))

    def _item(self, at: int, start: int) -> int:
        """Take what one JSON value says, and return where it ends."""
        taker = self.taker
        if len(taker.refused) > taker.limits.max_attempts:
            raise Broken(at, f"more than {taker.limits.max_attempts} items are no call", limit=True)
        try:
            value, end, repairs = taker.json(at, self.style)
        except Broken as error:
            behind = None if error.limit else extent(self.text, at, taker.meter)
            if behind is None:
                raise
            taker.refused.append((Reason.BROKEN, error.why, at, behind))
            return behind
        if "closed_brackets" in repairs and end >= len(self.text):
            raise Broken(end, "the reply ends inside the call", cut=True)
        calls = taker.calls_in(value, wrapped=True, shorthand=self.style.shorthand)
        if calls is None:
            why = "what stands in the wrapper is JSON, but no call with a name and arguments"
            taker.refused.append((Reason.BROKEN, why, at, end))
            return end
        nothing_more(self.text, end, [arguments for _, arguments, _ in calls])
        taker.take(calls, (self.dialect, *repairs), start, end)
        return end


def _label(token: str) -> str:
    word = re.sub(r"\W+", "_", re.sub(r":\w+>\Z", "", token)).strip("_").lower()
    return "functools" if word.startswith("functools") else word
