"""How STATEK's client waits and tries again (behaviour 8, last point; checked with 1.4.2)."""

from __future__ import annotations

from typing import Final

from statek_sim.errors import (
    ProviderBug,
    ProviderFailure,
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
    StatekSimError,
)
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply

CLIENT_TIMEOUT: Final = 60.0
"""Virtual seconds that the client waits for an answer."""

RETRY_DELAYS: Final = (3.0, 15.0)
"""Virtual seconds between the first and second attempt, and between the second and third."""

MAX_ATTEMPTS: Final = len(RETRY_DELAYS) + 1
"""Attempts per LLM call; the failure of the last one ends the job."""


def is_temporary(failure: ProviderFailure) -> bool:
    """Tell whether STATEK tries again after `failure`: no connection, a timeout, or HTTP 408, 429 and 500 to 599."""
    if isinstance(failure, ProviderHTTPError):
        return failure.status in (408, 429) or 500 <= failure.status <= 599
    return isinstance(failure, ProviderTimeout | ProviderUnreachable)


def retry_delay(failure: ProviderFailure, attempt: int) -> float | None:
    """Return the virtual seconds to wait after attempt `attempt` (from 1) failed; None: no more attempts."""
    if attempt < 1:
        raise ValueError(f"attempts count from 1, not {attempt!r}")
    if attempt >= MAX_ATTEMPTS or not is_temporary(failure):
        return None
    return RETRY_DELAYS[attempt - 1]


def bug_of(who: str, error: BaseException) -> ProviderBug:
    """Return what an exception is that is no failure of a provider's."""
    shown = f"{type(error).__name__}: {error}".removesuffix(": ")
    return ProviderBug(
        f"{who} raised {shown}; a provider that fails raises "
        "ProviderHTTPError, ProviderTimeout or ProviderUnreachable"
    )


def checked_reply(who: str, reply: object) -> RawReply:
    """Return a provider's answer; `ProviderBug` for what is none."""
    if not isinstance(reply, RawReply):
        raise ProviderBug(f"{who} returned {reply!r}, expected a RawReply")
    return reply


def ask(provider: Provider, request: ChatRequest) -> RawReply:
    """Ask `provider` as STATEK's client does: a longer wait than `CLIENT_TIMEOUT` is a `ProviderTimeout`.

    The timeout's text is empty, like that of httpx's `ReadTimeout`. Whatever else the provider raises is a
    `ProviderBug`.
    """
    try:
        reply = provider.complete(request)
    except ProviderFailure as failure:
        if failure.latency > CLIENT_TIMEOUT:
            raise ProviderTimeout("", latency=CLIENT_TIMEOUT) from failure
        raise
    except StatekSimError:
        raise
    except Exception as error:
        raise bug_of(type(provider).__name__, error) from error
    if not isinstance(reply, RawReply):
        reply = checked_reply(f"{type(provider).__name__}.complete", reply)
    if reply.latency > CLIENT_TIMEOUT:
        raise ProviderTimeout("", latency=CLIENT_TIMEOUT)
    return reply
