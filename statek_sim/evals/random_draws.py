"""Random numbers without a generator: each number is a hash of its purpose and depends on nothing else.

Two arms of an experiment get the same number for the same purpose, in any order and in any process.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeVar

T = TypeVar("T")
_SCALE: Final = 1 << 53


def uniform(*words: str | int) -> float:
    """Return a number in [0, 1) that depends only on `words`, which state its purpose."""
    digest = hashlib.blake2b("\x1f".join(map(str, words)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / _SCALE


def picked(options: Sequence[T], *words: str | int) -> T:
    """Return one of the options; the choice depends only on `words`, which state its purpose."""
    return options[int(uniform(*words) * len(options))]


@cache
def beta(a: float, b: float, *words: str | int) -> float:
    """Return a number from 0 to 1, drawn from Beta(a, b); it depends only on `words`, which state its purpose."""
    return random.Random("\x1f".join(map(str, words))).betavariate(a, b)


_MARKS: Final = {"#": "0123456789", "?": "ABCDEFGHJKLMNPQRSTUVWXYZ", "%": "0123456789abcdef"}
"""Placeholders for random characters in a code: a digit, a capital letter, a hexadecimal digit."""


class Draws:
    """Random draws for one eval and seed. Each draw depends only on its name, so a new draw does not change others."""

    def __init__(self, eval_id: str, seed: int) -> None:
        self._key = f"{eval_id}/{seed}/".encode()

    def number(self, name: str, below: int) -> int:
        """Return an integer from 0 to `below` - 1."""
        digest = hashlib.blake2b(self._key + name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % below

    def pick(self, name: str, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.number(name, len(options))]

    def shuffled(self, name: str, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        left = list(items)
        for at in range(len(left) - 1, 0, -1):
            other = self.number(f"{name}/{at}", at + 1)
            left[at], left[other] = left[other], left[at]
        return left

    def code(self, name: str, pattern: str) -> str:
        """Return a pattern with random characters in place of its placeholders: `ORD-####` may become `ORD-3071`."""
        letters = [
            _MARKS[mark][self.number(f"{name}/{at}", len(_MARKS[mark]))] if mark in _MARKS else mark
            for at, mark in enumerate(pattern)
        ]
        return "".join(letters)

    def distinct(self, name: str, draw: Any, count: int) -> list[Any]:
        """Return `count` different values, each from a `draw(name)` call; raises `LookupError` if there are too few."""
        found: dict[Any, None] = {}
        for tried in range(count * 40 + 40):
            if len(found) == count:
                break
            found.setdefault(draw(f"{name}/{tried}"))
        if len(found) < count:
            raise LookupError(f"{name}: found {len(found)} different values, expected {count}")
        return list(found)
