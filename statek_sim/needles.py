"""Which of many short texts are in a long one: what `needle in text` says of each, with most of them never looked for.

Four bytes that a text does not have beside each other are in no needle that it has. Every second place of the text is
looked at, so a needle of five bytes or more has such four bytes at its first or at its second place.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_LEAST: Final = 5
_WIDTH: Final = 4
_STRIDE: Final = 2


class Needles:
    """Texts that are looked for together, case counts."""

    def __init__(self, needles: Iterable[str]) -> None:
        each = dict.fromkeys(needles)
        self._short = tuple(needle for needle in each if len(_bytes(needle)) < _LEAST)
        self._longer = tuple((needle, *_quads_of(_bytes(needle))) for needle in each.keys() - self._short)

    def within(self, text: str) -> set[str]:
        """Return those that are in a text."""
        quads = _quads(text)
        # Written out, since this is all that is done for most of them.
        found = {
            needle
            for needle, first, last, second, last_but_one in self._longer
            if ((first in quads and last in quads) or (second in quads and last_but_one in quads))
            and needle in text
        }
        found.update(needle for needle in self._short if needle in text)
        return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _quads_of(needle: bytes) -> tuple[int, int, int, int]:
    """Return the first and the last quad that a text has for this needle, for either way in which it may lie there."""
    ends = [(first, first + (len(needle) - _WIDTH - first) // _STRIDE * _STRIDE) for first in range(_STRIDE)]
    (first, last), (second, last_but_one) = ends
    return _quad(needle, first), _quad(needle, last), _quad(needle, second), _quad(needle, last_but_one)


def _quad(needle: bytes, at: int) -> int:
    return memoryview(needle[at : at + _WIDTH]).cast("I")[0]


@lru_cache(maxsize=8)
def _quads(text: str) -> frozenset[int]:
    """Return every four bytes at an even place; the newest are kept, as several parties look at one text."""
    encoded = _bytes(text)
    found: set[int] = set()
    for start in range(0, _WIDTH, _STRIDE):
        quads = array("I")
        quads.frombytes(encoded[start : start + (len(encoded) - start) // _WIDTH * _WIDTH])
        found.update(quads)
    return frozenset(found)
