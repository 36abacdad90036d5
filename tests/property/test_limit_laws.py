"""Laws that hold for every limit, extension and counter."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.harness.harness import LLM_Harness, LLM_HarnessError
from statek_sim.harness.limits import (
    ExtensionRule,
    HarnessLimits,
    LimitName,
    effective_limit,
)

rules = st.sampled_from(ExtensionRule)
bases = st.integers(0, 10**9)
extensions = st.floats(0, 1_000_000)
completion_counts = st.none() | st.integers(0, 10_000)
counts = st.integers(0, 10**6)
limits = st.builds(
    HarnessLimits,
    max_turns=st.none() | counts,
    max_exceptions=st.none() | counts,
    max_consecutive_exceptions=st.none() | counts,
    max_token_usage=st.none() | counts,
    limit_extension_per_completion=st.floats(0, 10),
)


@dataclass(frozen=True)
class Counters:
    """A job as the harness sees it."""

    num_turns: int
    exception_count: int
    max_consecutive_exceptions: int
    approx_token_usage: int
    num_completions: int | None
    difficulty_token_extension: int


jobs = st.builds(
    Counters,
    num_turns=counts,
    exception_count=counts,
    max_consecutive_exceptions=counts,
    approx_token_usage=counts,
    num_completions=st.none() | st.integers(0, 50),
    difficulty_token_extension=counts,
)

COUNTED = {
    LimitName.MAX_TURNS: "num_turns",
    LimitName.MAX_EXCEPTIONS: "exception_count",
    LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "max_consecutive_exceptions",
    LimitName.MAX_TOKEN_USAGE: "approx_token_usage",
}
BEFORE = (LimitName.MAX_TURNS, LimitName.MAX_EXCEPTIONS, LimitName.MAX_CONSECUTIVE_EXCEPTIONS)
AFTER = (LimitName.MAX_TOKEN_USAGE, LimitName.MAX_EXCEPTIONS, LimitName.MAX_CONSECUTIVE_EXCEPTIONS)


def stopped_by(harness: LLM_Harness, job: Counters, *, before: bool) -> LimitName | None:
    """Return the limit that the check before or after a step raises for, or None."""
    try:
        harness.check_before_step(job) if before else harness.check_after_step(job)
    except LLM_HarnessError as error:
        return error.limit
    return None


def over(limits: HarnessLimits, job: Counters, rule: ExtensionRule, name: LimitName) -> bool:
    """Return whether `job` is over one limit, straight from the definition."""
    extension = limits.limit_extension_per_completion
    limit = effective_limit(getattr(limits, name), extension, job.num_completions, rule)
    if limit is None:
        return False
    granted = job.difficulty_token_extension if name is LimitName.MAX_TOKEN_USAGE else 0
    return bool(getattr(job, COUNTED[name]) > limit + granted)


@given(base=bases, extension=extensions, completions=completion_counts, rule=rules)
def test_an_extension_never_shrinks_a_limit(
    base: int, extension: float, completions: int | None, rule: ExtensionRule
) -> None:
    limit = effective_limit(base, extension, completions, rule)
    assert limit is not None
    assert limit >= base


@given(base=bases, extension=extensions, completions=st.integers(0, 10_000), rule=rules)
def test_one_more_completion_never_shrinks_a_limit(
    base: int, extension: float, completions: int, rule: ExtensionRule
) -> None:
    fewer = effective_limit(base, extension, completions, rule)
    more = effective_limit(base, extension, completions + 1, rule)
    assert fewer is not None
    assert more is not None
    assert more >= fewer


@given(extension=extensions, completions=completion_counts, rule=rules)
def test_unlimited_stays_unlimited(extension: float, completions: int | None, rule: ExtensionRule) -> None:
    assert effective_limit(None, extension, completions, rule) is None


@given(limits=limits, job=jobs, rule=rules, before=st.booleans())
def test_a_job_is_stopped_exactly_by_the_first_limit_it_is_over(
    limits: HarnessLimits, job: Counters, rule: ExtensionRule, before: bool
) -> None:
    harness = LLM_Harness.from_limits(limits, rule=rule)
    order = BEFORE if before else AFTER
    expected = next((name for name in order if over(limits, job, rule, name)), None)
    assert stopped_by(harness, job, before=before) == expected


@given(limits=limits, jobs=st.lists(jobs, min_size=2, max_size=5), rule=rules)
def test_what_a_harness_saw_of_other_jobs_never_changes_its_verdict(
    limits: HarnessLimits, jobs: list[Counters], rule: ExtensionRule
) -> None:
    shared = LLM_Harness.from_limits(limits, rule=rule)
    for job in [*jobs, *reversed(jobs)]:
        alone = LLM_Harness.from_limits(limits, rule=rule)
        for before in (True, False):
            assert stopped_by(shared, job, before=before) == stopped_by(alone, job, before=before)
