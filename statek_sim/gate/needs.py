"""The smallest limits that a scenario needs, derived from a single run without limits.

Limits affect a run only through the harness's checks, which pass or fail. `WatchedHarness` records the counts at every
check. A limit's needed value is the smallest value with which none of these checks fails, including extensions by
completions, so no further runs are required. This does not hold if a tool reads the harness's limits; such reads are
recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Final

from statek_sim.gate.verdict import LimitFigure
from statek_sim.harness.harness import LLM_Harness, harness_error
from statek_sim.harness.limits import (
    Exceeded,
    ExtensionRule,
    HarnessLimits,
    HarnessSubject,
    LimitName,
    count_for,
    effective_limit,
    exceeded_after_step,
    exceeded_before_step,
    limits_in_force,
)

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


def needed(checks: Checks, limit: LimitName, extension: float) -> int:
    """Return the smallest value with which this limit stops no job; `extension` is the preset's.

    `checks` come from a run without limits.
    """
    counts = list(_counts(checks, limit))

    def enough(value: int) -> bool:
        return all(
            count <= (effective_limit(value, extension, done, checks.rule) or 0) for done, count in counts
        )

    return bisect_left(range(max((count for _, count in counts), default=0)), True, key=enough)


def needs_clause(figures: Sequence[LimitFigure], limit: LimitName) -> str:
    """Return the clause `needs >= N` for the limit that stopped a scenario, and for other limits that are too small."""
    needed = next(figure.needed for figure in figures if figure.limit is limit)
    others = [
        f"{figure.limit} >= {figure.needed}"
        for figure in figures
        if figure.too_small and figure.limit is not limit
    ]
    also = f", and {' and '.join(others)}" if others else ""
    return f"needs >= {needed}{also}"


def _counts(checks: Checks, limit: LimitName) -> Iterator[tuple[int | None, int]]:
    """Yield the completions and a limit's count at each check."""
    for counted in (*checks.passed, *(failed for failed, _ in checks.failed)):
        yield counted.num_completions, _count(counted, limit)


def _count(counted: Counted, limit: LimitName) -> int:
    return count_for(
        limit,
        turns=counted.num_turns,
        exceptions=counted.exception_count,
        streak=counted.max_consecutive_exceptions,
        tokens=counted.approx_token_usage - counted.difficulty_token_extension,
    )


class When(StrEnum):
    """When the harness checks limits: before or after a step."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A job's counts at one harness check; counts that the check does not use are 0."""

    when: When
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
    of that kind do. Checks with equal `when`, `num_completions` and `difficulty_token_extension` are of one kind.
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
    """Return the limit that a check would find exceeded under these limits, or None if the check passes."""
    in_force = limits_in_force(limits, counted.num_completions, rule)
    exceeded = exceeded_before_step if counted.when is When.BEFORE else exceeded_after_step
    return exceeded(in_force, counted)


class WatchedHarness(LLM_Harness):
    """STATEK's harness, which also records every check."""

    __slots__ = ("_failed", "_passed", "_read")

    def __init__(self, limits: HarnessLimits, rule: ExtensionRule) -> None:
        super().__init__(*astuple(limits), rule=rule)
        self._passed: dict[tuple[When, int | None, int], Counted] = {}
        self._failed: list[tuple[Counted, Exceeded]] = []
        self._read = False

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
        kind = counted.when, counted.num_completions, counted.difficulty_token_extension
        self._passed[kind] = counted.largest(self._passed.get(kind, counted))

    # -- properties for tools --------------------------------------------------------------------------------

    @property
    def limits(self) -> HarnessLimits:
        """The limits; reading them, or one of them, is recorded."""
        self._read = True
        return self._limits
