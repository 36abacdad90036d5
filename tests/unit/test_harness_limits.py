"""Tests of `statek_sim.harness.limits`."""

from __future__ import annotations

from typing import Any

import pytest

from statek_sim.errors import BadSetting
from statek_sim.harness.limits import (
    MAX_EXTENSION,
    MAX_LIMIT,
    Exceeded,
    ExtensionRule,
    HarnessLimits,
    LimitName,
    effective_limit,
    limits_in_force,
)
from tests.tables import table_test

ADDITIVE, MULTIPLICATIVE = ExtensionRule.ADDITIVE, ExtensionRule.MULTIPLICATIVE


def test_the_additive_rule_gives_the_example_that_document_000_prints() -> None:
    assert effective_limit(5, 0.5, 2, ADDITIVE) == 8.0


def test_the_multiplicative_rule_multiplies_the_base() -> None:
    assert effective_limit(5, 0.5, 2, MULTIPLICATIVE) == 10.0


def test_a_zero_extension_still_adds_one_per_completion_under_the_additive_rule_only() -> None:
    assert effective_limit(5, 0.0, 3, ADDITIVE) == 8.0
    assert effective_limit(5, 0.0, 3, MULTIPLICATIVE) == 5.0


@pytest.mark.parametrize("rule", ExtensionRule)
def test_without_a_completion_count_the_base_comes_back_as_an_int(rule: ExtensionRule) -> None:
    limit = effective_limit(5, 0.5, None, rule)
    assert (limit, type(limit)) == (5, int)


@pytest.mark.parametrize("rule", ExtensionRule)
def test_zero_completions_turn_the_limit_into_an_equal_float(rule: ExtensionRule) -> None:
    limit = effective_limit(5, 0.5, 0, rule)
    assert (limit, type(limit)) == (5.0, float)


@table_test("rule", ExtensionRule)
@table_test("completions", [None, 0, 7])
def test_completions_do_not_limit_what_is_unlimited(rule: ExtensionRule, completions: int | None) -> None:
    assert effective_limit(None, 0.5, completions, rule) is None


def test_all_four_limits_are_extended() -> None:
    in_force = limits_in_force(HarnessLimits(limit_extension_per_completion=1.0), 2, MULTIPLICATIVE)
    assert (in_force.max_turns, in_force.max_exceptions) == (15.0, 9.0)
    assert (in_force.max_consecutive_exceptions, in_force.max_token_usage) == (3.0, 30_000.0)


def test_the_default_limits_are_those_of_document_000() -> None:
    limits = HarnessLimits()
    assert (limits.max_turns, limits.max_exceptions, limits.max_consecutive_exceptions) == (5, 3, 1)
    assert (limits.max_token_usage, limits.limit_extension_per_completion) == (10_000, 0.0)


def test_the_message_shows_the_limit_as_it_was_computed() -> None:
    assert Exceeded(LimitName.MAX_TURNS, 6, 5).message == "Maximum number of turns exceeded: 6/5"
    assert Exceeded(LimitName.MAX_TURNS, 6, 5.0).message == "Maximum number of turns exceeded: 6/5.0"


@table_test("wrong", [-1, True, "5", 5.0, float("nan"), float("inf"), MAX_LIMIT + 1, [5]])
@table_test("name", LimitName)
def test_a_value_that_is_no_limit_is_refused_by_name(name: LimitName, wrong: Any) -> None:
    with pytest.raises(BadSetting) as caught:
        HarnessLimits(**{str(name): wrong})
    assert str(caught.value) == (
        f"{name}={wrong!r}: expected a whole number from 0 to 9223372036854775807, or None (unlimited)"
    )


@table_test("wrong", [-0.1, True, "0", None, float("nan"), float("inf"), MAX_EXTENSION * 2, 10**400])
def test_a_value_that_is_no_extension_is_refused(wrong: Any) -> None:
    with pytest.raises(BadSetting) as caught:
        HarnessLimits(limit_extension_per_completion=wrong)
    assert str(caught.value) == (
        f"limit_extension_per_completion={wrong!r}: expected a number from 0 to 1000000"
    )


def test_the_largest_limit_and_extension_are_accepted() -> None:
    limits = HarnessLimits(max_turns=MAX_LIMIT, limit_extension_per_completion=MAX_EXTENSION)
    assert limits_in_force(limits, 1_000_000, MULTIPLICATIVE).max_turns == pytest.approx(MAX_LIMIT * 1e12)
