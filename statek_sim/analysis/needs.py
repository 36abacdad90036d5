"""The smallest value that a scenario needs for a limit, derived from a single run without this limit.

Limits affect a run only through the harness's checks, which pass or fail. `WatchedHarness` records the counts at every
check. A limit's needed value is the smallest value with which it fails none of these checks, including extensions by
completions, so no further runs are required. A limit that a run assigns no longer depends on its configured value, so
each check also records the limits assigned before it. None of this holds if a tool reads the harness's limits; such
reads are recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.harness.harness import LLM_Harness, harness_error
from statek_sim.harness.limits import (
    Exceeded,
    ExtensionRule,
    HarnessLimits,
    HarnessSubject,
    LimitName,
    exceeded_after_step,
    exceeded_before_step,
    limits_in_force,
)
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.tokenizers import TokenizerRegistry

MOST_TURNS: Final = 1_000
"""The LLM turns after which a run without limits stops a job and treats it as endless."""


def unlimited(extension: float) -> HarnessLimits:
    """Return limits, with this extension per completion, that stop only endless jobs."""
    return HarnessLimits(
        max_turns=MOST_TURNS,
        max_exceptions=None,
        max_consecutive_exceptions=None,
        max_token_usage=None,
        limit_extension_per_completion=extension,
    )


def needed(checks: Checks, limits: HarnessLimits, limit: LimitName) -> int | None:
    """Return the smallest value with which this limit stops no job, under otherwise these limits.

    Return None if no value is enough, because the run itself assigns a value that is too small. `checks` come from
    a run under `limits` without this limit.
    """

    def exceeded(value: int) -> list[int]:
        changes: dict[str, int] = {limit.value: value}
        changed = replace(limits, **changes)
        every = (*checks.passed, *(failed for failed, _ in checks.failed))
        found = (decision(counted, changed, checks.rule) for counted in every)
        return [one.count for one in found if one is not None and one.limit is limit]

    most = max(exceeded(0), default=0)
    return None if exceeded(most) else bisect_left(range(most), True, key=lambda value: not exceeded(value))


def watched_run(
    scenario: Scenario,
    profile: Profile,
    limits: HarnessLimits,
    *,
    preset: str | None,
    tokenizers: TokenizerRegistry | None = None,
) -> tuple[RunRecord, Checks]:
    """Run a scenario under these limits, and return its record and its limit checks."""
    # A scenario with deviations runs first without them.
    made: list[WatchedHarness] = []

    def watching(harness: LLM_Harness) -> LLM_Harness:
        made.append(WatchedHarness(limits, harness.rule))
        return made[-1]

    record = run_scenario(scenario, profile, preset=preset, tokenizers=tokenizers, harness=watching)
    return record, made[-1].checks()


class When(StrEnum):
    """When the harness checks limits: before or after a step."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A job's counts at one harness check; counts that the check does not use are 0.

    `assigned` contains the names and values of the limits that the run has assigned.
    """

    when: When
    assigned: tuple[tuple[str, Any], ...]
    num_completions: int | None
    difficulty_token_extension: int = 0
    num_turns: int = 0
    exception_count: int
    max_consecutive_exceptions: int
    approx_token_usage: int = 0

    def largest(self, other: Counted) -> Counted:
        """Return the larger value of each count from two checks of the same kind."""
        return replace(
            self,
            num_turns=max(self.num_turns, other.num_turns),
            exception_count=max(self.exception_count, other.exception_count),
            max_consecutive_exceptions=max(self.max_consecutive_exceptions, other.max_consecutive_exceptions),
            approx_token_usage=max(self.approx_token_usage, other.approx_token_usage),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """All limit checks in a run.

    `passed` contains the largest counts among passed checks of each kind; if these pass under other limits, all checks
    of that kind do. Checks with equal `when`, `assigned`, `num_completions` and `difficulty_token_extension` are of one
    kind.
    `failed` contains the checks that found a limit exceeded. `limits_read` is whether a tool read the harness's limits.
    """

    rule: ExtensionRule
    passed: tuple[Counted, ...]
    failed: tuple[tuple[Counted, Exceeded], ...]
    limits_read: bool

    def same_run(self, limits: HarnessLimits) -> bool:
        """Return whether a run under these limits would be the same."""
        if self.limits_read:
            return False
        if any(decision(counted, limits, self.rule) is not None for counted in self.passed):
            return False
        return all(decision(counted, limits, self.rule) == exceeded for counted, exceeded in self.failed)


def decision(counted: Counted, limits: HarnessLimits, rule: ExtensionRule) -> Exceeded | None:
    """Return the limit that a check would find exceeded under these configured limits, or None if it passes."""
    if counted.assigned:
        limits = replace(limits, **dict(counted.assigned))
    in_force = limits_in_force(limits, counted.num_completions, rule)
    exceeded = exceeded_before_step if counted.when is When.BEFORE else exceeded_after_step
    return exceeded(in_force, counted)


class WatchedHarness(LLM_Harness):
    """STATEK's harness, which also records every check."""

    __slots__ = ("_assigned", "_failed", "_passed", "_read")

    def __init__(self, limits: HarnessLimits, rule: ExtensionRule) -> None:
        super().__init__(*astuple(limits), rule=rule)
        self._assigned: dict[str, Any] = {}
        self._passed: dict[tuple[object, ...], Counted] = {}
        self._failed: list[tuple[Counted, Exceeded]] = []
        self._read = False

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a limit; later checks record its value. Raises `BadSetting` for an invalid value."""
        super().__setattr__(name, value)
        if name in self.limits_type.__dataclass_fields__:
            self._assigned[name] = value

    def checks(self) -> Checks:
        """Return the recorded checks."""
        return Checks(
            rule=self.rule,
            passed=tuple(self._passed.values()),
            failed=tuple(self._failed),
            limits_read=self._read,
        )

    def check_before_step(self, job: HarnessSubject) -> None:
        """Check turns and exceptions; raise `LLM_HarnessError` in the same cases as STATEK."""
        self._check(
            Counted(
                when=When.BEFORE,
                assigned=tuple(self._assigned.items()),
                num_completions=job.num_completions,
                num_turns=job.num_turns,
                exception_count=job.exception_count,
                max_consecutive_exceptions=job.max_consecutive_exceptions,
            )
        )

    def check_after_step(self, job: HarnessSubject) -> None:
        """Check tokens and exceptions; raise `LLM_HarnessError` in the same cases as STATEK."""
        self._check(
            Counted(
                when=When.AFTER,
                assigned=tuple(self._assigned.items()),
                num_completions=job.num_completions,
                difficulty_token_extension=job.difficulty_token_extension,
                exception_count=job.exception_count,
                max_consecutive_exceptions=job.max_consecutive_exceptions,
                approx_token_usage=job.approx_token_usage,
            )
        )

    def _check(self, counted: Counted) -> None:
        exceeded = decision(counted, self._limits, self._rule)
        if exceeded is not None:
            self._failed.append((counted, exceeded))
            raise harness_error(exceeded)
        kind = counted.when, counted.assigned, counted.num_completions, counted.difficulty_token_extension
        self._passed[kind] = counted.largest(self._passed.get(kind, counted))

    # -- properties for tools --------------------------------------------------------------------------------

    @property
    def limits(self) -> HarnessLimits:
        """The limits; reading them, or one of them, is recorded."""
        self._read = True
        return self._limits
