"""Calls whose tags are names: `<read_file><path>a.py</path></read_file>`, as Cline and Roo ask models to write them.

Such tags are also XML or HTML that is only shown. They are a call where a tool of that name was offered, every tag in
it is one of its arguments, and all of them are closed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from statek_sim.agent.rescue.markup import CDATA, half_kept, half_lined, kept, lines_of
from statek_sim.agent.rescue.meter import Broken, Meter
from statek_sim.agent.rescue.offered import TypedText
from statek_sim.agent.rescue.openings import CODE, TAG

_TAG: Final = re.compile(r"\s*<(?P<key>[A-Za-z_][\w-]{0,127})>")


def read_tags(
    text: str, at: int, call: str, known: frozenset[str], meter: Meter
) -> tuple[dict[str, TypedText], int]:
    """Return the arguments from `at` on, and the end of `</call>`. `known` are the names that arguments may have.

    Raises `Broken` where a tag is no argument, is not closed, or where a value holds what may be a tag of the call.
    """
    made: dict[str, TypedText] = {}
    tags = _tags_of(call, tuple(sorted(known)))
    while True:
        meter.token(at)
        opening = _TAG.match(text, at)
        if opening is None:
            break
        key = opening["key"]
        if key not in known or key in made:
            raise Broken(at, f"<{key[:40]}> is no argument of {call[:40]!r}, or is there twice")
        made[key], at = _value(text, opening.end(), key, tags, meter)
    end = text.find(f"</{call}>", at, at + len(call) + 200)
    between = text[at : at + 200] if end < 0 else text[at:end]
    if end < 0 or between.strip():
        rest = between.strip()
        raise Broken(
            at, f"{rest[:24]!r} in a call" if rest else "the reply ends inside the call", cut=not rest
        )
    end += len(call) + 3
    if text.startswith("</", meter.next(tags, text, end)):
        raise Broken(end, "an argument is closed behind the end of its call")
    return made, end


def _value(text: str, at: int, key: str, tags: re.Pattern[str], meter: Meter) -> tuple[TypedText, int]:
    """Return the value at `at` and the end of its closing tag, which is the next of the call's tags."""
    cdata = CDATA.match(text, at)
    if cdata is not None:
        value, end = kept(text, cdata.end(), re.compile(f"</{re.escape(key)}>"), meter)
        return TypedText(value), end
    closing = tags.search(text, at)
    meter.steps += (len(text) if closing is None else closing.end()) - at
    if closing is None:
        raise Broken(len(text), "the reply ends inside an argument", cut=True)
    if closing.group() != f"</{key}>":
        raise Broken(closing.start(), "where an argument ends cannot be told")
    written = text[at : closing.start()]
    if half_kept(written):
        raise Broken(closing.start(), "where a text that is kept as it is begins cannot be told")
    return TypedText(lines_of(written), unsure=half_lined(written)), closing.end()


@dataclass(slots=True)
class KnownTags:
    """The tags of a reply that are names of offered tools, asked for from left to right; code on a line has none."""

    text: str
    names: Container[str]
    _tags: Iterator[re.Match[str]] = field(init=False)
    _code: Iterator[re.Match[str]] = field(init=False)
    _next: re.Match[str] | None = None
    _span: tuple[int, int] = (-1, -1)

    def __post_init__(self) -> None:
        self._tags, self._code = TAG.finditer(self.text), CODE.finditer(self.text)
        self._next = self._following()

    def between(self, at: int, end: int) -> re.Match[str] | None:
        """Return the first tag that starts at `at` or behind it and before `end`."""
        while self._next is not None and self._next.start() < end:
            if self._next.start() >= at and not self._in_code(self._next.start()):
                return self._next
            self._next = self._following()
        return None

    def _following(self) -> re.Match[str] | None:
        names = self.names
        for tag in self._tags:
            if tag["tag_name"] in names:
                return tag
        return None

    def _in_code(self, at: int) -> bool:
        while self._span[1] <= at:
            code = next(self._code, None)
            self._span = (len(self.text), len(self.text) + 1) if code is None else code.span()
        return self._span[0] < at


@lru_cache(maxsize=256)
def _tags_of(call: str, known: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of everything that may open or close this call or one of its arguments."""
    return re.compile(rf"</?(?:{'|'.join(map(re.escape, (call, *known)))})>")
