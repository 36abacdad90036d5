"""Limits, and which of them a job exceeds: the pure rules of the harness ("Harness Policies"; behaviour 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from statek_sim.errors import BadSetting

MAX_LIMIT: Final = 2**63 - 1
"""Maximum limit; unlimited is None."""

MAX_EXTENSION: Final = 1_000_000.0
"""Maximum extension per completion; with it every effective limit is a finite number."""


MOST_STEPS: Final = 20_000
"""Maximum steps of one job in a run; a job with more counts as endless. Not a limit of STATEK's."""

MOST_ESCAPES: Final = 25
"""Maximum consecutive steps that end in an exception which STATEK's worker does not catch; more count as endless."""


class ExtensionRule(StrEnum):
    """How completions extend a limit."""

    ADDITIVE = "additive"
    """`base + (1.0 + extension) * completions`: document "Harness Policies", and STATEK up to 1.2.7."""

    MULTIPLICATIVE = "multiplicative"
    """`base * (1.0 + extension * completions)`: STATEK from 1.3.0."""


class LimitName(StrEnum):
    """The four limits, by the names of their settings."""

    MAX_TURNS = "max_turns"
    MAX_EXCEPTIONS = "max_exceptions"
    MAX_CONSECUTIVE_EXCEPTIONS = "max_consecutive_exceptions"
    MAX_TOKEN_USAGE = "max_token_usage"


LIMITS: Final = frozenset(limit.value for limit in LimitName)
"""The `stop` of a job that the harness stopped."""

EXCEEDED: Final = {
    LimitName.MAX_TURNS: "Maximum number of turns exceeded",
    LimitName.MAX_EXCEPTIONS: "Maximum number of exceptions exceeded",
    LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "Maximum consecutive exceptions exceeded",
    LimitName.MAX_TOKEN_USAGE: "Maximum token usage exceeded",
}
"""STATEK's sentences, at the start of the error that ends a job."""


def count_for(limit: LimitName, *, turns: int, exceptions: int, streak: int, tokens: int) -> int:
    """Return the count of a job that is compared with a limit."""
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
    """The counters of a job that the harness reads. A counter is read only by a check that needs it."""

    @property
    def num_turns(self) -> int:
        """LLM turns so far; warmup blocks do not count ("Harness Policies", What the Limits Mean)."""

    @property
    def exception_count(self) -> int:
        """Exceptions of LLM turns, from code and from tool calls."""

    @property
    def max_consecutive_exceptions(self) -> int:
        """Longest streak of failing LLM turns."""

    @property
    def approx_token_usage(self) -> int:
        """`(total_bytes_sent + total_bytes_received) // 4`, in tokens."""

    @property
    def num_completions(self) -> int | None:
        """How often the job became DONE, or None before the first time."""

    @property
    def difficulty_token_extension(self) -> int:
        """Additional tokens granted by a higher difficulty (from 1.4.1; 0 before)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessLimits:
    """The configured limits of a process. None means unlimited. Defaults: document "Harness Policies".

    An invalid value (negative, NaN, infinite, a bool, a string) is `BadSetting`.
    """

    max_turns: int | None = 5
    max_exceptions: int | None = 3
    max_consecutive_exceptions: int | None = 1
    max_token_usage: int | None = 10_000
    limit_extension_per_completion: float = 0.0

    def __post_init__(self) -> None:
        """Raise `BadSetting` for the first invalid value."""
        for limit in LimitName:
            _require_limit(limit, getattr(self, limit))
        _require_extension(self.limit_extension_per_completion)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsInForce:
    """The four limits after extension. None means unlimited."""

    max_turns: float | None
    max_exceptions: float | None
    max_consecutive_exceptions: float | None
    max_token_usage: float | None


@dataclass(frozen=True, slots=True)
class Exceeded:
    """One limit that a job exceeded: its count and the limit in force at that moment."""

    limit: LimitName
    count: int
    effective: float

    @property
    def message(self) -> str:
        """STATEK's sentence. The limit is an int until the first completion, then a float."""
        return f"{EXCEEDED[self.limit]}: {self.count}/{self.effective}"


def effective_limit(
    base: int | None, extension: float, completions: int | None, rule: ExtensionRule
) -> float | None:
    """Return `base` as extended by `completions`, or None for unlimited.

    An unlimited base stays unlimited. Without a completion count the base is returned unchanged, an int; with one, even
    0, the result is a float.

    Source: "Harness Policies", Completion-Based Extension.
    """
    if base is None or completions is None:
        return base
    if rule is ExtensionRule.ADDITIVE:
        return base + (1.0 + extension) * completions
    return base * (1.0 + extension * completions)


def limits_in_force(limits: HarnessLimits, completions: int | None, rule: ExtensionRule) -> LimitsInForce:
    """Return all four limits as extended by `completions`."""
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
    """Return the first limit that `job` exceeds before a step: turns, exceptions, consecutive (behaviour 4.1).

    A job exactly at a limit does not exceed it.
    """
    if limits.max_turns is not None and job.num_turns > limits.max_turns:
        return Exceeded(LimitName.MAX_TURNS, job.num_turns, limits.max_turns)
    return _exceeded_exceptions(limits, job)


def exceeded_after_step(limits: LimitsInForce, job: HarnessSubject) -> Exceeded | None:
    """Return the first limit that `job` exceeds after a step: tokens, exceptions, consecutive (behaviour 4.1).

    The token limit also grows by `job.difficulty_token_extension` (behaviour 4.3).
    """
    if limits.max_token_usage is not None:
        tokens = limits.max_token_usage + job.difficulty_token_extension
        if job.approx_token_usage > tokens:
            return Exceeded(LimitName.MAX_TOKEN_USAGE, job.approx_token_usage, tokens)
    return _exceeded_exceptions(limits, job)


def _exceeded_exceptions(limits: LimitsInForce, job: HarnessSubject) -> Exceeded | None:
    """Return the last part of both checks: the total, then the streak."""
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
    # The range also refuses NaN and infinity.
    if isinstance(extension, int | float) and not is_bool and 0 <= extension <= MAX_EXTENSION:
        return
    raise BadSetting(
        f"limit_extension_per_completion={extension!r}: expected a number from 0 to {MAX_EXTENSION:.0f}"
    )
