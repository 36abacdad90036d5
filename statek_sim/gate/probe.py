"""What a scenario needs of every limit, found by one run without limits.

A harness that never stops a job sees everything that limits are held against, at every check. Limits change nothing
before they stop a job, so the smallest limit with which none of these checks fails is exactly what is needed, and
which completions extend it is known too. No search is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from statek_sim.backends.record import RunRecord
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import (
    ExtensionRule,
    HarnessLimits,
    HarnessSubject,
    LimitName,
    effective_limit,
)

MOST_TURNS: Final = 1_000
"""LLM turns after which a job counts as one that never ends."""


class ProbeHarness(LLM_Harness):
    """Stops nothing but what never ends, and notes the most that was counted of each limit, by completions."""

    __slots__ = ("counted", "was_read")

    def __init__(self, rule: ExtensionRule) -> None:
        super().__init__(MOST_TURNS, None, None, None, rule=rule)
        self.counted: dict[tuple[LimitName, int | None], int] = {}
        self.was_read = False

    @property
    def limits(self) -> HarnessLimits:
        """The limits, which are none; noted, since a tool that asks for them may do something else under others."""
        self.was_read = True
        return super().limits

    @property
    def max_turns(self) -> int | None:
        """As `limits`."""
        return self.limits.max_turns

    @property
    def max_exceptions(self) -> int | None:
        """As `limits`."""
        return self.limits.max_exceptions

    @property
    def max_consecutive_exceptions(self) -> int | None:
        """As `limits`."""
        return self.limits.max_consecutive_exceptions

    @property
    def max_token_usage(self) -> int | None:
        """As `limits`."""
        return self.limits.max_token_usage

    @property
    def limit_extension_per_completion(self) -> float:
        """As `limits`."""
        return self.limits.limit_extension_per_completion

    def check_before_step(self, job: HarnessSubject) -> None:
        """Note what STATEK checks before a step."""
        self._note(LimitName.MAX_TURNS, job, job.num_turns)
        self._exceptions(job)
        super().check_before_step(job)

    def check_after_step(self, job: HarnessSubject) -> None:
        """Note what STATEK checks after a step; tokens that a rise of the difficulty grants count as not used."""
        self._note(LimitName.MAX_TOKEN_USAGE, job, job.approx_token_usage - job.difficulty_token_extension)
        self._exceptions(job)
        super().check_after_step(job)

    def _exceptions(self, job: HarnessSubject) -> None:
        self._note(LimitName.MAX_EXCEPTIONS, job, job.exception_count)
        self._note(LimitName.MAX_CONSECUTIVE_EXCEPTIONS, job, job.max_consecutive_exceptions)

    def _note(self, limit: LimitName, job: HarnessSubject, count: int) -> None:
        key = (limit, job.num_completions)
        self.counted[key] = max(count, self.counted.get(key, 0))


@dataclass(frozen=True, slots=True)
class Probe:
    """A run without limits: its record, what was counted, and how completions extend limits.

    `asked`: something in the run asked for the limits, so that under others it may have gone otherwise.
    """

    record: RunRecord
    counted: Mapping[tuple[LimitName, int | None], int]
    rule: ExtensionRule
    asked: bool

    def is_run_under(self, limits: HarnessLimits) -> bool:
        """Return whether the run is the same under `limits`: none of them is exceeded, and nobody asked for them."""
        if (
            self.asked
            or max((count for _, count in self._counts(LimitName.MAX_TURNS)), default=0) > MOST_TURNS
        ):
            return False
        return not any(
            count > effective
            for (limit, done), count in self.counted.items()
            if (effective := self._effective(limits, limit, done)) is not None
        )

    def needed(self, limit: LimitName, extension: float) -> int:
        """Return the smallest value with which this limit stops no job, extended as a preset says."""
        counts = list(self._counts(limit))
        low, high = 0, max((count for _, count in counts), default=0)
        while low < high:
            middle = (low + high) // 2
            enough = all(not _over(middle, extension, done, self.rule, count) for done, count in counts)
            low, high = (low, middle) if enough else (middle + 1, high)
        return low

    def _effective(self, limits: HarnessLimits, limit: LimitName, completions: int | None) -> float | None:
        base: int | None = getattr(limits, limit.value)
        return effective_limit(base, limits.limit_extension_per_completion, completions, self.rule)

    def _counts(self, limit: LimitName) -> Iterator[tuple[int | None, int]]:
        return ((done, count) for (name, done), count in self.counted.items() if name is limit)


def _over(value: int, extension: float, completions: int | None, rule: ExtensionRule, count: int) -> bool:
    effective = effective_limit(value, extension, completions, rule)
    return effective is not None and count > effective
