"""Multi-pattern substring search: equivalent to `needle in text` for each needle, but tests only a few of them.

A text can contain a needle only if it contains all of the needle's four-byte sequences. A text's sequences are computed
once for all needles.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_WIDTH: Final = 4


class Needles:
    """Strings to search for together. Matching is case-sensitive."""

    def __init__(self, needles: Iterable[str]) -> None:
        each = dict.fromkeys(needles)
        self._short = tuple(needle for needle in each if len(_bytes(needle)) < _WIDTH)
        quads = {needle: _quads_of(_bytes(needle)) for needle in each.keys() - self._short}
        needed = Counter(quad for every in quads.values() for quad in {*every})
        self._by_quad: dict[int, list[tuple[tuple[int, ...], str]]] = {}
        for needle, every in quads.items():
            # The four bytes that the fewest needles share are the most selective.
            first = min(every, key=lambda quad: (needed[quad], quad))
            others = tuple(quad for quad in every if quad != first)
            self._by_quad.setdefault(first, []).append((others, needle))
        self._quads = frozenset(self._by_quad)

    def within(self, text: str) -> set[str]:
        """Return the needles that occur in a text."""
        return {needle for needle in self.likely(text) if needle in text}

    def likely(self, text: str) -> set[str]:
        """Return the needles that occur in a text, and possibly others, for callers that locate each needle anyway."""
        quads = _quads(text)
        found = {
            needle
            for first in self._quads & quads
            for others, needle in self._by_quad[first]
            if quads.issuperset(others)
        }
        found.update(self._short)
        return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _quads_of(needle: bytes) -> list[int]:
    places = range(len(needle) - _WIDTH + 1)
    return [memoryview(needle[at : at + _WIDTH]).cast("I")[0] for at in places]


@lru_cache(maxsize=8)
def _quads(text: str) -> frozenset[int]:
    """Return all four-byte sequences in a text. Recent texts are cached, because several callers check them."""
    encoded = _bytes(text)
    quads = array("I")
    for start in range(_WIDTH):
        size = max(0, len(encoded) - start) // _WIDTH * _WIDTH
        quads.frombytes(encoded[start : start + size])
    return frozenset(quads)
