"""Intervals of a mean hold what they promise, of three values too."""

from __future__ import annotations

from random import Random

import pytest

from statek_sim.intervals import of_mean, student
from tests.tables import table_test

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042, 1000: 1.962}
"""The 97.5 % points of Student's distribution, from the printed tables."""


@table_test(("freedom", "printed"), TABLE.items())
def test_the_width_of_an_interval_is_that_of_the_tables(freedom: int, printed: float) -> None:
    assert student(freedom) == pytest.approx(printed, rel=2e-3)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_nineteen_of_twenty_intervals_hold_the_mean(count: int) -> None:
    draw = Random(count)
    found = [of_mean([draw.gauss(5.0, 2.0) for _ in range(count)]) for _ in range(4000)]
    held = sum(1 for interval in found if interval is not None and interval[0] <= 5.0 <= interval[1])
    assert 0.94 <= held / len(found) <= 0.96


def test_one_value_says_nothing_of_its_mean() -> None:
    assert of_mean([3.0]) is None
    assert of_mean([3.0, 3.0]) == (3.0, 3.0)
