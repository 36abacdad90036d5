"""Facts of a message: each must be in the same line, on its own."""

from __future__ import annotations

import pytest

from tests.says import line_with, says
from tests.tables import table_test

TEXT = "a.env:2: `max_turns` is 4, expected -1.5 or more (did you mean 'turn'?)\nb.env:41: too late."


@table_test(
    ("facts", "found"),
    [
        (["4", "a.env:2", "'turn'?", "-1.5", "more (did"], True),
        (["b.env:41", "late"], True),
        (["a.env:2", "late"], False),
        (["a.env:2", "a.env:2"], False),
        (["env", "env"], False),
        (["expected", "a.env:2", "4"], True),
        (["a.env"], True),
        (["b.env:4"], False),
        (["1.5"], False),
        (["-1"], False),
        (["turns"], False),
        (["5"], False),
    ],
)
def test_a_fact_is_found_in_one_line_and_on_its_own(facts: list[str], found: bool) -> None:
    assert says(TEXT, *facts) is found


@table_test("facts", [[], [""], ["a", ""], ["4", "4 turns"]])
def test_a_check_that_could_not_fail_is_refused(facts: list[str]) -> None:
    with pytest.raises(ValueError, match="could not fail"):
        line_with(*facts)
