"""The decisions that make an example, taken one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

BATCH: Final = 8
"""Examples per run of Hypothesis. From the tenth on it would vary those that it has, and near copies find little."""


class Draw(Protocol):
    """Takes decisions. Simpler ones come first in every list: a failing example is made small towards them."""

    def of(self, options: Sequence[T]) -> T:
        """Return one of fewer than a hundred options; one that is listed twice is drawn twice as often."""

    def part(self, make: Callable[[Draw], T]) -> T:
        """Return what `make` makes: a part that can be simplified on its own."""

    def some(self, make: Callable[[Draw], T], *, least: int = 0, most: int) -> list[T]:
        """Return between `least` and `most` things that `make` made; a failing example keeps few of them."""


def seldom(draw: Draw) -> bool:
    """Return True in one case of eight."""
    return draw.of((False,) * 7 + (True,))


def maybe(draw: Draw) -> bool:
    """Return True in one case of two."""
    return draw.of((False, True))
