"""Merging partial scenarios and the expectations of one profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.scenario.load import expectations_for, load_or_fail, merge
from statek_sim.scenario.schema import PROFILES, Scenario
from statek_sim.values import JSON
from tests.tables import table_test

TEXT = """\
scenarios:
  - id: one
    title: Expectations differ
    agents: {worker: {}}
    expect: {llm_calls: 3, jobs: {main: {exit: ok, console: [a], error: null}}}
    expect_in:
      "1.4": {llm_calls: 4, jobs: {main: {exit: null, console: {lines: 2}}}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "file.yaml").write_text(TEXT)
    return load_or_fail([tmp_path])[0]


@table_test(
    ("base", "over", "merged"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4}}, {"a": 1, "b": {"c": 4, "d": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": 1}, {"a": 1}),
    ],
)
def test_mappings_merge_and_everything_else_replaces(base: JSON, over: JSON, merged: JSON) -> None:
    assert merge(base, over) == merged


def test_merging_leaves_both_sides_as_they_were() -> None:
    base: JSON = {"a": {"b": 1}}
    over: JSON = {"a": {"c": 2}}
    merge(base, over)
    assert (base, over) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_a_profile_without_its_own_expectations_has_the_common_ones(scenario: Scenario) -> None:
    assert expectations_for(scenario, "docs") is scenario.expect


def test_a_profiles_expectations_are_merged_over_the_common_ones(scenario: Scenario) -> None:
    expect = expectations_for(scenario, "1.4")
    main = expect.jobs["main"]
    assert (expect.llm_calls, main.exit, main.error) == (4, None, None)
    assert [name for name, _ in main.said_items()] == ["exit", "error", "console"]
    assert not isinstance(main.console, tuple)
    assert dict(main.console.said_items()) == {"lines": 2}


def test_what_is_not_said_stays_not_said(scenario: Scenario) -> None:
    for profile in PROFILES:
        expect = expectations_for(scenario, profile)
        assert not expect.said("handlers")
        assert not expect.jobs["main"].said("status")
