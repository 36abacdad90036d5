"""What differs by seed: choices from a hash of (seed, eval, name), the same on every machine and release of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")

_MARKS: Final = {"#": "0123456789", "?": "ABCDEFGHJKLMNPQRSTUVWXYZ", "%": "0123456789abcdef"}
"""What stands for a random letter in a code: a digit, a capital letter, a digit of base 16."""


class Draws:
    """Draws by name: each name has a stream of its own, so that a new one changes no other."""

    def __init__(self, eval_id: str, seed: int) -> None:
        self._key = f"{eval_id}/{seed}/".encode()

    def number(self, name: str, below: int) -> int:
        """Return a whole number from 0 that is less than `below`."""
        digest = hashlib.blake2b(self._key + name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % below

    def pick(self, name: str, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.number(name, len(options))]

    def shuffled(self, name: str, items: Sequence[T]) -> list[T]:
        """Return the items in an order of their own."""
        left = list(items)
        for at in range(len(left) - 1, 0, -1):
            other = self.number(f"{name}/{at}", at + 1)
            left[at], left[other] = left[other], left[at]
        return left

    def code(self, name: str, pattern: str) -> str:
        """Return a pattern with its marks replaced: `ORD-####`."""
        letters = [
            _MARKS[mark][self.number(f"{name}/{at}", len(_MARKS[mark]))] if mark in _MARKS else mark
            for at, mark in enumerate(pattern)
        ]
        return "".join(letters)

    def distinct(self, name: str, draw: Any, count: int) -> list[Any]:
        """Return `count` values that differ, each of `draw(name of the try)`; `LookupError` when there are too few."""
        found: dict[Any, None] = {}
        for tried in range(count * 40 + 40):
            if len(found) == count:
                break
            found.setdefault(draw(f"{name}/{tried}"))
        if len(found) < count:
            raise LookupError(f"{name}: found {len(found)} different values, expected {count}")
        return list(found)
