"""Ranges of a sweep as people write them."""

from __future__ import annotations

import re

import pytest

from statek_sim.errors import BadInput
from statek_sim.gate.sweep_ranges import Axis, ranges_among, read_axes, read_axis
from statek_sim.harness.limits import LimitName
from tests.tables import table_test


@table_test(
    ("text", "values"),
    [
        ("max_turns=3..20", tuple(range(3, 21))),
        ("max_turns=3..20/4", (3, 7, 11, 15, 19)),
        ("max_turns=8,3, 5,3", (3, 5, 8)),
        ("max_turns=3..5,10,20..40/10", (3, 4, 5, 10, 20, 30, 40)),
        ("max_turns=7..7", (7,)),
        ("max_token_usage=5k..60k", tuple(range(5_000, 60_001, 5_000))),
        ("max_token_usage=5k..61k", (*range(5_000, 60_001, 5_000), 61_000)),
        ("max_token_usage=10k..1M/250k", (10_000, 260_000, 510_000, 760_000)),
        (" max_exceptions = 0..2 ", (0, 1, 2)),
    ],
)
def test_a_range_is_read_as_written(text: str, values: tuple[int, ...]) -> None:
    assert read_axis(text).values == values


@table_test(
    ("sweep", "words", "ranges", "others"),
    [
        (["max_turns=2..6"], ["batch"], ["max_turns=2..6"], ["batch"]),
        (["max_turns"], ["2..6"], ["max_turns=2..6"], []),
        (["max_turns 2..6"], [], ["max_turns=2..6"], []),
        (
            ["max_turns"],
            ["batch", "2..6", "max_token_usage=5k"],
            ["max_turns=2..6", "max_token_usage=5k"],
            ["batch"],
        ),
        (
            ["max_turns"],
            ["2,3", "max_token_usage", "5k..9k/2k"],
            ["max_turns=2,3", "max_token_usage=5k..9k/2k"],
            [],
        ),
        (["max_turns", "max_exceptions"], ["3"], ["max_turns=3", "max_exceptions"], []),
        (["max_tokens"], ["batch"], ["max_tokens"], ["batch"]),
    ],
)
def test_a_limit_and_its_values_may_be_two_words(
    sweep: list[str], words: list[str], ranges: list[str], others: list[str]
) -> None:
    assert ranges_among(sweep, words) == (ranges, others)


@table_test("last", [1, 19, 20, 21, 99, 100, 101, 54_321, 10**9])
def test_a_range_without_a_step_has_few_values_and_both_ends(last: int) -> None:
    values = read_axis(f"max_turns=0..{last}").values
    assert (values[0], values[-1]) == (0, last)
    assert len(values) <= 21


@table_test(
    ("text", "problem"),
    [
        ("max_turns", "expected LIMIT=VALUES, like max_turns=3..20"),
        ("max_turns=", "expected LIMIT=VALUES"),
        ("max_tokens=5k", "no limit 'max_tokens'; .* Did you mean 'max_token_usage'?"),
        ("max_turns=3..x", "'x' is no number; expected one like 8, 5k or 1M"),
        ("max_turns=3..", "'' is no number"),
        ("max_turns=-3", "'-3' is no number"),
        ("max_turns=20..3", "'20..3' runs backwards; write 3..20"),
        ("max_turns=3..20/0", "a step of 0 never reaches 20"),
        ("max_turns=3/2", "'3/2' has a step but is no range"),
        ("max_turns=1..1000/1", "1000 values; at most 200, give a larger step"),
        ("max_turns=99999999999999999999", "is too large"),
    ],
)
def test_a_range_that_makes_no_sense_is_told_apart(text: str, problem: str) -> None:
    with pytest.raises(
        BadInput, match=rf"^--sweep {re.escape(repr(text))}: .*" + problem.replace("?", r"\?") + ".*$"
    ):
        read_axis(text)


def test_a_sweep_has_one_axis_or_two_of_different_limits() -> None:
    assert read_axes(["max_turns=3,4"]) == (Axis(LimitName.MAX_TURNS, (3, 4)),)
    with pytest.raises(
        BadInput, match=r"^--sweep: max_turns is given twice; list all its values at once, .*$"
    ):
        read_axes(["max_turns=3", "max_turns=4"])
    with pytest.raises(BadInput, match=r"^--sweep: expected one limit or two, got 3; .*$"):
        read_axes(["max_turns=3", "max_exceptions=4", "max_token_usage=5k"])
