"""Reduction leaves nothing out that is needed, and nothing in that is not."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.explore.result import reduced


@given(st.lists(st.integers(0, 30), min_size=1, unique=True), st.data())
def test_what_is_left_fails_and_without_any_part_does_not(parts: list[int], data: st.DataObject) -> None:
    needed = set(data.draw(st.lists(st.sampled_from(parts), min_size=1, unique=True)))

    def fails(some: Sequence[int]) -> bool:
        return needed <= set(some)

    smallest = reduced(parts, fails)
    assert set(smallest) == needed
    assert list(smallest) == [part for part in parts if part in needed]


def test_of_two_that_are_enough_each_one_is_left() -> None:
    assert len(reduced("abcdef", lambda some: "b" in some or "e" in some)) == 1
