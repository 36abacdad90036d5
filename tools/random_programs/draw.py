"""The choices that make up an example, made one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

BATCH: Final = 8
"""Examples per Hypothesis run. From the tenth on, it would vary earlier ones, and near copies find little."""


class Draw(Protocol):
    """Makes choices. Simpler options come first in every list, because failing examples shrink towards them."""

    def of(self, options: Sequence[T]) -> T:
        """Return one of fewer than a hundred options; an option listed twice is drawn twice as often."""

    def part(self, make: Callable[[Draw], T]) -> T:
        """Return the result of `make` as a part that can be simplified on its own."""

    def some(self, make: Callable[[Draw], T], *, least: int = 0, most: int) -> list[T]:
        """Return between `least` and `most` results of `make`; a failing example keeps few of them."""


def seldom(draw: Draw) -> bool:
    """Return True in one of eight cases."""
    return draw.of((False,) * 7 + (True,))


def maybe(draw: Draw) -> bool:
    """Return True in one of two cases."""
    return draw.of((False, True))
