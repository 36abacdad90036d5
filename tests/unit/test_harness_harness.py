"""Tests of `statek_sim.harness.harness`.

The expected messages in RELEASED are what the released packages 1.2.7 and 1.4.2 raise for the same counters.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from statek_sim import errors
from statek_sim.errors import BadSetting
from statek_sim.harness.harness import LLM_Harness, LLM_HarnessError
from statek_sim.harness.limits import ExtensionRule, LimitName
from tests.tables import table_test

DEFAULTS = (5, 3, 1, 10_000)


@dataclass(kw_only=True)
class Counters:
    """A job as the harness sees it."""

    num_turns: int = 0
    exception_count: int = 0
    max_consecutive_exceptions: int = 0
    approx_token_usage: int = 0
    num_completions: int | None = None
    difficulty_token_extension: int = 0


def message(check: Any, job: Counters) -> str | None:
    """Return what the check raises, or None."""
    try:
        check(job)
    except LLM_HarnessError as error:
        return str(error)
    return None


def turns(text: str) -> str:
    return f"Maximum number of turns exceeded: {text}"


def total(text: str) -> str:
    return f"Maximum number of exceptions exceeded: {text}"


def streak(text: str) -> str:
    return f"Maximum consecutive exceptions exceeded: {text}"


def tokens(text: str) -> str:
    return f"Maximum token usage exceeded: {text}"


RELEASED: list[tuple[float, Counters, tuple[str | None, str | None], tuple[str | None, str | None]]] = [
    (0, Counters(num_turns=5), (None, None), (None, None)),
    (0, Counters(num_turns=6), (turns("6/5"), None), (turns("6/5"), None)),
    (0, Counters(exception_count=3), (None, None), (None, None)),
    (0, Counters(exception_count=4), (total("4/3"), total("4/3")), (total("4/3"), total("4/3"))),
    (0, Counters(max_consecutive_exceptions=1), (None, None), (None, None)),
    (0, Counters(max_consecutive_exceptions=2), (streak("2/1"),) * 2, (streak("2/1"),) * 2),
    (0, Counters(approx_token_usage=10_000), (None, None), (None, None)),
    (0, Counters(approx_token_usage=10_001), (None, tokens("10001/10000")), (None, tokens("10001/10000"))),
    (0, Counters(num_turns=6, num_completions=0), (turns("6/5.0"), None), (turns("6/5.0"), None)),
    (0, Counters(num_turns=6, num_completions=1), (None, None), (turns("6/5.0"), None)),
    (0, Counters(num_turns=7, num_completions=1), (turns("7/6.0"), None), (turns("7/5.0"), None)),
    (0.5, Counters(num_turns=8, num_completions=2), (None, None), (None, None)),
    (0.5, Counters(num_turns=9, num_completions=2), (turns("9/8.0"), None), (None, None)),
    (0.5, Counters(num_turns=11, num_completions=2), (turns("11/8.0"), None), (turns("11/10.0"), None)),
    (0.1, Counters(num_turns=9, num_completions=3), (turns("9/8.3"), None), (turns("9/6.5"), None)),
    (0.25, Counters(exception_count=6, num_completions=3), (None, None), (total("6/5.25"),) * 2),
    (0.25, Counters(exception_count=7, num_completions=3), (total("7/6.75"),) * 2, (total("7/5.25"),) * 2),
    (0.25, Counters(max_consecutive_exceptions=2, num_completions=1), (None, None), (streak("2/1.25"),) * 2),
    (
        0.25,
        Counters(max_consecutive_exceptions=3, num_completions=1),
        (streak("3/2.25"),) * 2,
        (streak("3/1.25"),) * 2,
    ),
    (0.25, Counters(approx_token_usage=10_001, num_completions=1), (None, None), (None, None)),
    (
        0.25,
        Counters(approx_token_usage=10_002, num_completions=1),
        (None, tokens("10002/10001.25")),
        (None, None),
    ),
    (
        0.25,
        Counters(approx_token_usage=12_501, num_completions=1),
        (None, tokens("12501/10001.25")),
        (None, tokens("12501/12500.0")),
    ),
]


@table_test(("extension", "job", "as_1_2", "as_1_4"), RELEASED)
def test_both_rules_say_what_their_release_says(
    extension: float,
    job: Counters,
    as_1_2: tuple[str | None, str | None],
    as_1_4: tuple[str | None, str | None],
) -> None:
    for rule, expected in ((ExtensionRule.ADDITIVE, as_1_2), (ExtensionRule.MULTIPLICATIVE, as_1_4)):
        harness = LLM_Harness(*DEFAULTS, extension, rule=rule)
        said = (message(harness.check_before_step, job), message(harness.check_after_step, job))
        assert said == expected


def test_the_first_check_reports_turns_then_the_total_then_the_streak() -> None:
    check = LLM_Harness(*DEFAULTS).check_before_step
    job = Counters(num_turns=6, exception_count=4, max_consecutive_exceptions=2, approx_token_usage=10_001)
    assert message(check, job) == turns("6/5")
    job.num_turns = 5
    assert message(check, job) == total("4/3")
    job.exception_count = 3
    assert message(check, job) == streak("2/1")
    job.max_consecutive_exceptions = 1
    assert message(check, job) is None


def test_the_second_check_reports_tokens_then_the_total_then_the_streak() -> None:
    check = LLM_Harness(*DEFAULTS).check_after_step
    job = Counters(num_turns=6, exception_count=4, max_consecutive_exceptions=2, approx_token_usage=10_001)
    assert message(check, job) == tokens("10001/10000")
    job.approx_token_usage = 10_000
    assert message(check, job) == total("4/3")
    job.exception_count = 3
    assert message(check, job) == streak("2/1")
    job.max_consecutive_exceptions = 1
    assert message(check, job) is None


def test_none_is_unlimited_for_each_limit_even_after_completions() -> None:
    harness = LLM_Harness(None, None, None, None, 0.5)
    for completions in (None, 4):
        job = Counters(
            num_turns=10**6,
            exception_count=10**6,
            max_consecutive_exceptions=10**6,
            approx_token_usage=10**9,
            num_completions=completions,
        )
        harness.check_before_step(job)
        harness.check_after_step(job)


def test_a_limit_of_zero_stops_at_the_first_of_its_kind() -> None:
    harness = LLM_Harness(0, 0, 0, 0)
    harness.check_before_step(Counters())
    assert message(harness.check_before_step, Counters(num_turns=1)) == turns("1/0")
    assert message(harness.check_after_step, Counters(approx_token_usage=1)) == tokens("1/0")


def test_a_difficulty_rise_extends_the_token_limit_only() -> None:
    harness = LLM_Harness(*DEFAULTS)
    harness.check_after_step(Counters(approx_token_usage=12_000, difficulty_token_extension=2_000))
    over = Counters(approx_token_usage=12_001, difficulty_token_extension=2_000)
    assert message(harness.check_after_step, over) == tokens("12001/12000")
    assert message(harness.check_before_step, Counters(num_turns=6, difficulty_token_extension=9)) == turns(
        "6/5"
    )


@pytest.mark.parametrize(
    ("job", "limit"),
    [
        (Counters(num_turns=6), LimitName.MAX_TURNS),
        (Counters(exception_count=4), LimitName.MAX_EXCEPTIONS),
        (Counters(max_consecutive_exceptions=2), LimitName.MAX_CONSECUTIVE_EXCEPTIONS),
    ],
)
def test_the_error_says_which_limit_it_was(job: Counters, limit: LimitName) -> None:
    with pytest.raises(errors.LLM_HarnessError, match=r"^Maximum .* exceeded: \d/\d$") as caught:
        LLM_Harness(*DEFAULTS).check_before_step(job)
    assert isinstance(caught.value, LLM_HarnessError)
    assert (caught.value.limit, type(caught.value).__name__) == (limit, "LLM_HarnessError")


def test_the_error_survives_a_process_boundary() -> None:
    with pytest.raises(LLM_HarnessError, match=r"^Maximum token usage exceeded: 10001/10000$") as caught:
        LLM_Harness(*DEFAULTS).check_after_step(Counters(approx_token_usage=10_001))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.limit) == (str(caught.value), LimitName.MAX_TOKEN_USAGE)


def test_one_harness_keeps_jobs_with_different_completions_apart() -> None:
    harness = LLM_Harness(*DEFAULTS, 0.5)
    fresh, experienced = Counters(num_turns=6), Counters(num_turns=6, num_completions=1)
    for _ in range(3):
        assert message(harness.check_before_step, fresh) == turns("6/5")
        assert message(harness.check_before_step, experienced) is None


def test_a_harness_remembers_a_bounded_number_of_completion_counts() -> None:
    harness = LLM_Harness(*DEFAULTS)
    for completions in range(3_000):
        over = Counters(num_turns=completions + 6, num_completions=completions)
        assert message(harness.check_before_step, over) == turns(f"{completions + 6}/{completions + 5}.0")


def test_a_wrong_limit_is_refused_when_the_harness_is_made() -> None:
    with pytest.raises(BadSetting, match=r"^max_token_usage=-1: expected a whole number from 0 to "):
        LLM_Harness(5, 3, 1, -1)


def test_an_unknown_extension_rule_is_refused() -> None:
    wrong: Any = "exponential"
    with pytest.raises(BadSetting, match=r"^rule='exponential': expected 'additive' or 'multiplicative'$"):
        LLM_Harness(*DEFAULTS, rule=wrong)


def test_a_harness_shows_its_limits_and_rule_and_can_be_made_from_them() -> None:
    harness = LLM_Harness(9, None, 2, 100, 0.25, rule=ExtensionRule.MULTIPLICATIVE)
    again = LLM_Harness.from_limits(harness.limits, rule=harness.rule)
    assert (again.limits, again.rule) == (harness.limits, ExtensionRule.MULTIPLICATIVE)
    assert (again.limits.max_turns, again.limits.max_exceptions) == (9, None)
