"""Tests of `statek_sim.harness.limits`."""

from __future__ import annotations

import pytest

from statek_sim.harness.settings import TaskDifficulty, parse_difficulty
from tests.tables import table_test


@table_test("label", ["L", "l", "low", "LOW", " Low "])
def test_a_difficulty_has_a_short_and_a_long_label_in_any_case(label: str) -> None:
    assert parse_difficulty(label) is TaskDifficulty.LOW


def test_levels_come_in_rising_order() -> None:
    assert [parse_difficulty(label) for label in "LMH"] == list(TaskDifficulty)


@table_test("label", ["", "X", "LM", "mediu"])
def test_another_label_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match=rf"^difficulty '{label}': expected L, M, H, low, medium or high$"):
        parse_difficulty(label)
