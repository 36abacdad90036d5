"""Interface of a provider: takes a request, returns a raw HTTP response body.

STATEK's client waits and retries (behaviour 8, last point; checked with 1.4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Protocol

from statek_sim.errors import (
    ProviderBug,
    ProviderFailure,
    ProviderHTTPError,
    ProviderTimeout,
    ProviderUnreachable,
    StatekSimError,
)
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.request import PLAIN, ClientOptions, FormatName, text_in
from statek_sim.values import JSON, Message, ToolSpec

Place = Literal["chat", "embeddings", "count_tokens"]
"""The purpose of a request: a reply, the vectors of texts, or the number of its tokens."""

ChatStyleName = Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"]
"""STATEK's chat styles by name."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
"""The headers of a request that did not come over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One LLM call of one job, as its provider sees it. A `place` other than a chat is used over HTTP only.

    Three fields are not sent: `chat_style` tells a fake in which form the job executes code; `provider` is STATEK's
    name of the provider; `ends_by` says whether the job ends by code that calls `exit`, or by a text without calls.
    `turn` counts the LLM calls of the job from 1; a retry keeps the turn and increments `attempt`. `bytes_sent` is the
    size that STATEK meters (`usage.messages`), `at` is virtual seconds. `messages` is a snapshot: later turns never
    change it. Messages are in OpenAI's shape for every `wire` format; anything that the wire format cannot express is
    left out. `headers` are those of an HTTP request, by lower-case name.
    """

    job_id: str
    role: str
    turn: int
    attempt: int
    at: float
    model: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    temperature: float | None
    bytes_sent: int
    chat_style: ChatStyleName | None = None
    provider: str = ""
    wire: FormatName = "openai"
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    options: ClientOptions = PLAIN
    place: Place = "chat"
    ends_by: Literal["exit", "text"] = "exit"

    @property
    def last_message(self) -> str:
        """The text of the last message, or the empty string."""
        return text_in(self.messages[-1].get("content")) if self.messages else ""

    @property
    def last_tool_result(self) -> str | None:
        """The text of the last `tool` message, or None if there is none."""
        for message in reversed(self.messages):
            if message.get("role") == "tool":
                return text_in(message.get("content"))
        return None

    def body(self) -> dict[str, JSON]:
        """Return the whole JSON request body, with keys in STATEK's order (behaviour 12)."""
        return FORMATS[self.wire].request_body(self, self.options)


@dataclass(frozen=True, slots=True)
class RawReply:
    """A successful HTTP answer: the raw body, and the virtual seconds it took to arrive."""

    body: bytes
    latency: float = 0.0


class Provider(Protocol):
    """Anything that answers chat requests.

    `complete` returns the raw body of a successful answer, or raises `ProviderHTTPError` or
    `ProviderTimeout`. It never sleeps and never reads a clock: time goes into `latency`.
    """

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request."""


CLIENT_TIMEOUT: Final = 60.0
"""Virtual seconds that the client waits for an answer."""

RETRY_DELAYS: Final = (3.0, 15.0)
"""Virtual seconds between the first and second attempt, and between the second and third."""

MAX_ATTEMPTS: Final = len(RETRY_DELAYS) + 1
"""Attempts per LLM call; the failure of the last one ends the job."""


def is_temporary(failure: ProviderFailure) -> bool:
    """Return whether STATEK retries after `failure`: no connection, a timeout, or HTTP 408, 429 and 500 to 599."""
    if isinstance(failure, ProviderHTTPError):
        return failure.status in (408, 429) or 500 <= failure.status <= 599
    return isinstance(failure, ProviderTimeout | ProviderUnreachable)


def retry_delay(failure: ProviderFailure, attempt: int) -> float | None:
    """Return the virtual seconds to wait after failed attempt `attempt` (from 1); None: no more attempts."""
    if attempt < 1:
        raise ValueError(f"attempts count from 1, got {attempt!r}")
    if attempt >= MAX_ATTEMPTS or not is_temporary(failure):
        return None
    return RETRY_DELAYS[attempt - 1]


def bug_of(who: str, error: BaseException) -> ProviderBug:
    """Return a `ProviderBug` for an exception that is not a provider's failure."""
    shown = f"{type(error).__name__}: {error}".removesuffix(": ")
    return ProviderBug(
        f"{who} raised {shown}; a failing provider must raise ProviderHTTPError, ProviderTimeout or ProviderUnreachable"
    )


def checked_reply(who: str, reply: object) -> RawReply:
    """Return a provider's answer; raises `ProviderBug` if it is not a `RawReply`."""
    if not isinstance(reply, RawReply):
        raise ProviderBug(f"{who} returned {reply!r}, expected a RawReply")
    return reply


def ask(provider: Provider, request: ChatRequest) -> RawReply:
    """Call `provider` as STATEK's client does: a wait beyond `CLIENT_TIMEOUT` raises `ProviderTimeout`.

    The timeout's text is empty, like that of httpx's `ReadTimeout`. Any other exception of the provider is raised as
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
