"""Job limits, and the rules that decide whether a job exceeds them ("Harness Policies"; behaviour 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from statek_sim.errors import BadSetting

MAX_LIMIT: Final = 2**63 - 1
"""The largest allowed limit. None means unlimited."""

MAX_EXTENSION: Final = 1_000_000.0
"""The largest allowed extension per completion; it keeps every extended limit finite."""


MOST_STEPS: Final = 20_000
"""Maximum steps per job in a run; a job that exceeds it counts as endless. STATEK has no such limit."""

MOST_ESCAPES: Final = 25
"""Maximum consecutive steps of a job that end in an exception which STATEK's worker does not catch.

A job that exceeds it counts as endless.
"""


class ExtensionRule(StrEnum):
    """The formula for extending a limit by completed units of work."""

    ADDITIVE = "additive"
    """`base + (1.0 + extension) * completions`: document "Harness Policies", and STATEK up to 1.2.7."""

    MULTIPLICATIVE = "multiplicative"
    """`base * (1.0 + extension * completions)`: STATEK from 1.3.0."""


class LimitName(StrEnum):
    """The four limits, named after their settings."""

    MAX_TURNS = "max_turns"
    MAX_EXCEPTIONS = "max_exceptions"
    MAX_CONSECUTIVE_EXCEPTIONS = "max_consecutive_exceptions"
    MAX_TOKEN_USAGE = "max_token_usage"


LIMITS: Final = frozenset(limit.value for limit in LimitName)
"""The values of `Job.stop` for jobs that the harness stopped."""

EXCEEDED: Final = {
    LimitName.MAX_TURNS: "Maximum number of turns exceeded",
    LimitName.MAX_EXCEPTIONS: "Maximum number of exceptions exceeded",
    LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "Maximum consecutive exceptions exceeded",
    LimitName.MAX_TOKEN_USAGE: "Maximum token usage exceeded",
}
"""STATEK's error messages for exceeded limits, without the numbers."""


def count_for(limit: LimitName, *, turns: int, exceptions: int, streak: int, tokens: int) -> int:
    """Return the count that is compared with `limit`."""
    match limit:
        case LimitName.MAX_TURNS:
            return turns
        case LimitName.MAX_EXCEPTIONS:
            return exceptions
        case LimitName.MAX_CONSECUTIVE_EXCEPTIONS:
            return streak
        case LimitName.MAX_TOKEN_USAGE:
            return tokens


class HarnessSubject(Protocol):
    """The job counters that the harness reads. Each check reads only the counters it needs."""

    @property
    def num_turns(self) -> int:
        """Number of LLM turns so far, excluding warmup blocks ("Harness Policies", What the Limits Mean)."""

    @property
    def exception_count(self) -> int:
        """Number of exceptions in LLM turns, raised by code or by tool calls."""

    @property
    def max_consecutive_exceptions(self) -> int:
        """Length of the longest streak of failing LLM turns."""

    @property
    def approx_token_usage(self) -> int:
        """STATEK's token estimate: `(total_bytes_sent + total_bytes_received) // 4`."""

    @property
    def num_completions(self) -> int | None:
        """Number of completed units of work; None before the first completion."""

    @property
    def difficulty_token_extension(self) -> int:
        """Extra tokens granted for a higher difficulty (since 1.4.1; 0 in earlier releases)."""


@dataclass(frozen=True, slots=True)
class HarnessLimits:
    """A process's configured limits. None means unlimited. The defaults come from "Harness Policies".

    Raises `BadSetting` for an invalid value: a negative number, NaN, infinity, a bool or a string.
    """

    max_turns: int | None = 5
    max_exceptions: int | None = 3
    max_consecutive_exceptions: int | None = 1
    max_token_usage: int | None = 10_000
    limit_extension_per_completion: float = 0.0

    def __post_init__(self) -> None:
        """Validate the limits; raises `BadSetting` for the first invalid value."""
        for limit in LimitName:
            _require_limit(limit, getattr(self, limit))
        _require_extension(self.limit_extension_per_completion)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsInForce:
    """The four limits, extended for a job's completed units of work. None means unlimited."""

    max_turns: float | None
    max_exceptions: float | None
    max_consecutive_exceptions: float | None
    max_token_usage: float | None


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a job exceeded, with the job's count and the extended limit."""

    limit: LimitName
    count: int
    effective: float

    @property
    def message(self) -> str:
        """STATEK's error message.

        The limit is formatted as an int before the first completion, and as a float afterwards.
        """
        return f"{EXCEEDED[self.limit]}: {self.count}/{self.effective}"


def effective_limit(
    base: int | None, extension: float, completions: int | None, rule: ExtensionRule
) -> float | None:
    """Return the limit `base`, extended for `completions` completed units of work; None means unlimited.

    If `completions` is None, the result is `base` itself, an int. Otherwise, even for 0, the result is a float.

    Source: "Harness Policies", Completion-Based Extension.
    """
    if base is None or completions is None:
        return base
    if rule is ExtensionRule.ADDITIVE:
        return base + (1.0 + extension) * completions
    return base * (1.0 + extension * completions)


def limits_in_force(limits: HarnessLimits, completions: int | None, rule: ExtensionRule) -> LimitsInForce:
    """Return the four limits, extended for `completions` completed units of work."""
    extension = limits.limit_extension_per_completion
    return LimitsInForce(
        max_turns=effective_limit(limits.max_turns, extension, completions, rule),
        max_exceptions=effective_limit(limits.max_exceptions, extension, completions, rule),
        max_consecutive_exceptions=effective_limit(
            limits.max_consecutive_exceptions, extension, completions, rule
        ),
        max_token_usage=effective_limit(limits.max_token_usage, extension, completions, rule),
    )


def exceeded_before_step(limits: LimitsInForce, job: HarnessSubject) -> Exceeded | None:
    """Return the first limit that `job` exceeds before a step, or None (behaviour 4.1).

    The order is turns, exceptions, consecutive exceptions. A count that equals its limit does not exceed the limit.
    """
    if limits.max_turns is not None and job.num_turns > limits.max_turns:
        return Exceeded(LimitName.MAX_TURNS, job.num_turns, limits.max_turns)
    return _exceeded_exceptions(limits, job)


def exceeded_after_step(
    limits: LimitsInForce,
    job: HarnessSubject,
    usage: Callable[[HarnessSubject], int] = lambda job: job.approx_token_usage,
) -> Exceeded | None:
    """Return the first limit that `job` exceeds after a step, or None (behaviour 4.1).

    The order is tokens, exceptions, consecutive exceptions. The token limit is compared with `usage(job)`, and is
    increased by `job.difficulty_token_extension` (behaviour 4.3).
    """
    if limits.max_token_usage is not None:
        tokens, used = limits.max_token_usage + job.difficulty_token_extension, usage(job)
        if used > tokens:
            return Exceeded(LimitName.MAX_TOKEN_USAGE, used, tokens)
    return _exceeded_exceptions(limits, job)


def _exceeded_exceptions(limits: LimitsInForce, job: HarnessSubject) -> Exceeded | None:
    """Return the first exceeded exception limit: the total, then the longest streak."""
    total, streak = limits.max_exceptions, limits.max_consecutive_exceptions
    if total is not None and job.exception_count > total:
        return Exceeded(LimitName.MAX_EXCEPTIONS, job.exception_count, total)
    if streak is not None and job.max_consecutive_exceptions > streak:
        return Exceeded(LimitName.MAX_CONSECUTIVE_EXCEPTIONS, job.max_consecutive_exceptions, streak)
    return None


def _require_limit(name: LimitName, limit: object) -> None:
    # bool is an int in Python, but `max_turns=True` is a mistake, not a limit of one turn.
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and 0 <= limit <= MAX_LIMIT):
        return
    raise BadSetting(f"{name}={limit!r}: expected a whole number from 0 to {MAX_LIMIT}, or None (unlimited)")


def _require_extension(extension: object) -> None:
    is_bool = isinstance(extension, bool)
    # The range also rejects NaN and infinity.
    if isinstance(extension, int | float) and not is_bool and 0 <= extension <= MAX_EXTENSION:
        return
    raise BadSetting(
        f"limit_extension_per_completion={extension!r}: expected a number from 0 to {MAX_EXTENSION:.0f}"
    )
