"""Why an attempt ended, and what follows from it: a table, so that a wrong key does not cost the strongest model."""

from __future__ import annotations

import errno
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


def cause_of_failure(failure: BaseException) -> Cause:
    """Return the cause that an exception of a provider is; anything else is a bug.

    Python's own errors of time, names and connection are a provider's too, and so are those of the clients of OpenAI,
    Anthropic, httpx, aiohttp, requests and urllib, also of a connection that breaks off, and an exception with an HTTP
    status as `status_code` or `status`, of its own or of its `response`. A file that is not there and a full disk are
    bugs.
    """
    if isinstance(failure, ProviderTimeout | ProviderUnreachable | TimeoutError | ConnectionError):
        return Cause.UNAVAILABLE
    status = _status(failure)
    if status is None:
        return Cause.UNAVAILABLE if _is_of_the_network(failure) else Cause.BUG
    if status == 429:
        return Cause.RATE_LIMITED
    if status in (401, 402, 403):
        return Cause.UNAUTHORISED
    return Cause.UNAVAILABLE if status == 408 or status >= 500 else Cause.BAD_REQUEST


def _is_of_the_network(failure: BaseException) -> bool:
    if any(kind.__name__ in _NOT_REACHED for kind in type(failure).__mro__):
        return True
    # asyncio tells of several addresses that it could not connect to in one error without a number.
    return type(failure) is OSError and failure.errno in (None, *_UNREACHED)


def _status(failure: BaseException) -> int | None:
    """Return the HTTP status of a failed request, None where there is none."""
    if isinstance(failure, ProviderHTTPError):
        return failure.status
    for holder in (failure, getattr(failure, "response", None)):
        for name in ("status_code", "status"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status <= 599:
                return status
    return None


_NOT_REACHED: Final = frozenset(
    {
        "APIConnectionError", "NetworkError", "TimeoutException", "ClientConnectionError", "ConnectionError",
        "ReadTimeout", "URLError", "gaierror", "herror",
        "RemoteProtocolError", "ProxyError", "ClientPayloadError", "ChunkedEncodingError", "IncompleteRead",
    }
)  # fmt: skip
"""Classes of a failed connection by name, of clients that need not be installed or imported: openai's and anthropic's,
httpx' two, aiohttp's, requests' two, urllib's, and two of `socket`; then of one that broke off before an answer or in
the middle of it: httpx' two, aiohttp's, requests' and `http.client`'s."""
_UNREACHED: Final = (
    errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL,
)  # fmt: skip
"""What the system says of a network or host that is not there."""
