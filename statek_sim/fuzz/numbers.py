"""Decisions as numbers: an example is what a list of them leads to, so that it can be kept, changed and made small."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from statek_sim.conformance.examples.draw import Draw

T = TypeVar("T")

LARGEST: Final = 98
"""Options are fewer than a hundred."""


class Numbers:
    """Takes decisions from a list of numbers; behind its end they are drawn with `chance`, None: all of them are 0.

    0 is the simplest option of each decision.
    """

    def __init__(self, given: Sequence[int], chance: random.Random | None = None) -> None:
        self._given = given
        self._chance = chance
        self.taken: list[int] = []

    def of(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self._next() % len(options)]

    def part(self, make: Callable[[Draw], T]) -> T:
        """Return what `make` makes."""
        return make(self)

    def some(self, make: Callable[[Draw], T], *, least: int = 0, most: int) -> list[T]:
        """Return between `least` and `most` things that `make` made."""
        return [make(self) for _ in range(least + self._next() % (most - least + 1))]

    def _next(self) -> int:
        place = len(self.taken)
        if place < len(self._given):
            number = self._given[place]
        else:
            number = 0 if self._chance is None else self._chance.randint(0, LARGEST)
        self.taken.append(number)
        return number


def changed(numbers: Sequence[int], other: Sequence[int], chance: random.Random) -> tuple[int, ...]:
    """Return a list that differs a little: some numbers are others, missing, twice, or those of `other`."""
    made = list(numbers)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(made))
        match chance.randint(0, 4):
            case 0 | 1:
                made[at : at + 1] = [chance.randint(0, LARGEST)]
            case 2:
                del made[at : at + chance.randint(1, 4)]
            case 3:
                made[at:at] = made[max(0, at - chance.randint(1, 6)) : at]
            case _:
                made[at:] = other[at:]
    return tuple(made)
