"""With which texts the matches of a regular expression begin, so that it is tried where one of them stands.

A search tries a pattern at every character that one of its alternatives may begin with, which is every third of an
ordinary text. Where its first words stand is found twenty times as fast, and most of them are nowhere in a text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from statek_sim.substring_index import Needles

LEAST: Final = 2
"""Characters of a beginning: those of one stand everywhere."""
_LITERAL: Final = re.compile(r"\\(?P<escaped>[^\w\s])|(?P<plain>[^\\.^$*+?{}\[\]|()])")
_OPTIONAL: Final = ("?", "*", "{")
_LOOK: Final = ("(?=", "(?!", "(?<=", "(?<!")
_GROUP: Final = "(?:"
_LONG: Final = 4
"""Characters from which on a text is looked for together with others."""
_PART: Final = 1500
"""Characters of a part of a text in which a beginning is looked for by itself."""


def beginnings(pattern: str) -> tuple[str, ...]:
    """Return texts one of which every match begins with; none where that cannot be told, or one is very short."""
    # What stands behind a comment may make what stands before it optional. Flags stand in front, where no text begins.
    if "(?#" in pattern:
        return ()
    found, end = _of_alternatives(pattern, 0)
    if end < len(pattern) or min(map(len, found)) < LEAST:
        return ()
    each = tuple(dict.fromkeys(found))
    return tuple(text for text in each if not any(text != other and text.startswith(other) for other in each))


def _of_alternatives(pattern: str, at: int) -> tuple[list[str], int]:
    """Return what the alternatives from `at` begin with, and where they end: at a bracket that closes, or with all."""
    found: list[str] = []
    while True:
        texts, at = _of_sequence(pattern, at)
        found += texts
        at = _after_sequence(pattern, at)
        if pattern[at : at + 1] != "|":
            return found, at
        at += 1


def _of_sequence(pattern: str, at: int) -> tuple[list[str], int]:
    """Return what a sequence begins with, and up to where it was read."""
    literal = ""
    while at < len(pattern):
        if pattern.startswith(_LOOK, at):
            at = _after_group(pattern, at)
            continue
        if not literal and pattern.startswith(_GROUP, at):
            inner, end = _of_alternatives(pattern, at + len(_GROUP))
            return ([""] if pattern.startswith(_OPTIONAL, end + 1) else inner), end + 1
        sign = _LITERAL.match(pattern, at)
        if sign is None or pattern.startswith(_OPTIONAL, sign.end()):
            break
        literal += sign["escaped"] or sign["plain"]
        at = sign.end()
    return [literal], at


def _after_sequence(pattern: str, at: int) -> int:
    """Return where the alternative ends that `at` is in."""
    while at < len(pattern) and pattern[at] not in "|)":
        at = _after_group(pattern, at) if pattern[at] == "(" else _after_sign(pattern, at)
    return at


def _after_group(pattern: str, at: int) -> int:
    at += 1
    while pattern[at] != ")":
        at = _after_group(pattern, at) if pattern[at] == "(" else _after_sign(pattern, at)
    return at + 1


def _after_sign(pattern: str, at: int) -> int:
    """Return where the character, escape or class of characters ends that begins at `at`."""
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] != "[":
        return at + 1
    at += 2 if pattern.startswith("[^", at) else 1
    # A bracket that comes first is one of the class.
    at = _after_sign(pattern, at) if pattern[at] == "\\" else at + 1
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


class Beginning:
    """What the matches of a pattern begin with: long texts, which are looked for together, and short ones."""

    def __init__(self, text: str) -> None:
        self._text = text
        each = beginnings(text)
        self.long = frozenset(text for text in each if len(text) >= _LONG)
        self.short = tuple(text for text in each if len(text) < _LONG)
        self._is_known = bool(each)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern itself, compiled when one of its beginnings is first found: most never are."""
        return re.compile(self._text)

    def matches(self, places: Places, start: int, end: int) -> Iterator[re.Match[str]]:
        """Yield what `pattern.finditer` does between two places of a text."""
        if not self._is_known:
            yield from self.pattern.finditer(places.text, start, end)
            return
        tried: list[int] = []
        for text in (*(self.long & places.likely), *self.short):
            tried += places.between(text, start, end)
        done = start
        for place in sorted(tried):
            match = self.pattern.match(places.text, place, end) if place >= done else None
            if match is not None:
                yield match
                done = match.end()


class Places:
    """Where texts stand in one long text; `likely` are those of the wanted ones that may be there."""

    def __init__(self, text: str, wanted: Needles) -> None:
        self.text = text
        self.likely = wanted.likely(text)
        self._found: dict[str, Sequence[int]] = {}

    def of(self, needle: str) -> Sequence[int]:
        """Return every place of a text, in order; it is looked for once."""
        found = self._found.get(needle)
        if found is None:
            found = self._found[needle] = _places(self.text, needle, 0, len(self.text))
        return found

    def between(self, needle: str, start: int, end: int) -> Sequence[int]:
        """Return the places of a text that begins and ends between two others."""
        if end - start < _PART and needle not in self._found:
            return _places(self.text, needle, start, end)
        every = self.of(needle)
        return every[bisect_left(every, start) : bisect_left(every, end)]


def _places(text: str, needle: str, start: int, end: int) -> Sequence[int]:
    places: list[int] = []
    place = text.find(needle, start, end)
    while place >= 0:
        places.append(place)
        place = text.find(needle, place + 1, end)
    return places
