"""Why an attempt ended, and what follows from it: a table, so that a wrong key does not cost the strongest model."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from statek_sim.errors import ProviderFailure, ProviderHTTPError, ProviderTimeout, ProviderUnreachable


class Cause(StrEnum):
    """How an attempt ended."""

    SOLVED = "solved"
    POOR_QUALITY = "poor_quality"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    MAX_NUDGES = "max_nudges"
    MAX_ITERATIONS = "max_iterations"
    STUCK = "stuck"
    TOOL_ERRORS = "tool_errors"
    CONTEXT_OVERFLOW = "context_overflow"
    UNAUTHORISED = "unauthorised"
    BAD_REQUEST = "bad_request"
    BUDGET = "budget"
    LIMIT = "limit"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    BUG = "bug"
    REFUSED = "refused"
    EXPIRED = "expired"


Reaction = Literal["done", "again", "climb", "stop"]
"""What follows: nothing; the same level again while it has attempts, then the next; the next at once; the end."""

REACTIONS: Final[Mapping[Cause, Reaction]] = MappingProxyType(
    {
        Cause.SOLVED: "done",
        Cause.POOR_QUALITY: "again",
        Cause.RATE_LIMITED: "again",
        Cause.UNAVAILABLE: "again",
        Cause.MAX_NUDGES: "again",
        Cause.MAX_ITERATIONS: "climb",
        Cause.STUCK: "climb",
        Cause.TOOL_ERRORS: "climb",
        Cause.CONTEXT_OVERFLOW: "climb",
        Cause.UNAUTHORISED: "stop",
        Cause.BAD_REQUEST: "stop",
        Cause.BUDGET: "stop",
        Cause.LIMIT: "stop",
        Cause.BLOCKED: "stop",
        Cause.CANCELLED: "stop",
        Cause.BUG: "stop",
        Cause.REFUSED: "climb",
        Cause.EXPIRED: "climb",
    }
)
"""What a stronger model could help with climbs; a wrong key, a spent budget, a bug and a ban do not."""

WAITED_FOR: Final = frozenset({Cause.RATE_LIMITED, Cause.UNAVAILABLE})
"""Causes that time may cure: the next attempt waits."""

_STOPS: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        "final": Cause.SOLVED,
        "max_nudges": Cause.MAX_NUDGES,
        "max_iterations": Cause.MAX_ITERATIONS,
        "stuck": Cause.STUCK,
        "tool_errors": Cause.TOOL_ERRORS,
        "context_overflow": Cause.CONTEXT_OVERFLOW,
        "blocked": Cause.BLOCKED,
        "crash": Cause.BUG,
    }
)


def cause_of_stop(stop: str, failure: BaseException | None = None) -> Cause:
    """Return the cause that a run's stop reason is; `failure` is what raised it, where something did."""
    if stop.startswith("budget"):
        return Cause.BUDGET
    if isinstance(failure, ProviderFailure):
        return cause_of_failure(failure)
    return _STOPS.get(stop, Cause.LIMIT)


def cause_of_failure(failure: ProviderFailure) -> Cause:
    """Return the cause that a provider's failure is."""
    if not isinstance(failure, ProviderHTTPError):
        return Cause.UNAVAILABLE if isinstance(failure, ProviderTimeout | ProviderUnreachable) else Cause.BUG
    if failure.status == 429:
        return Cause.RATE_LIMITED
    if failure.status in (401, 402, 403):
        return Cause.UNAUTHORISED
    return Cause.UNAVAILABLE if failure.status == 408 or failure.status >= 500 else Cause.BAD_REQUEST
