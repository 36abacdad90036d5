"""The provider interface, its requests, and the timeout and retries of STATEK's client.

Source for the retries: behaviour 8, last point, verified with STATEK 1.4.2.
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
"""The kind of request: for a reply, for embeddings, or for a token count."""

ChatStyleName = Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"]
"""STATEK's chat styles by name."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
"""The (empty) headers of a request that was not sent over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One of a job's LLM calls, as its provider sees it.

    `turn` is the one-based number of the job's LLM call; a retry has the same turn and the next `attempt`. `at` is in
    virtual seconds. `bytes_sent` is the size that STATEK counts (`usage.messages`). `messages` always use the OpenAI
    message format, whatever the `wire` format, and must not be modified; the request body leaves out anything that its
    format cannot express. `headers` maps lower-case names to HTTP headers; a `place` other than `chat` exists only over
    HTTP.

    Three fields are not sent: `chat_style`, the form in which the job executes code; `provider`, STATEK's name for the
    provider; and `ends_by`, which is whether the job finishes by calling `exit` or with text that contains no calls.
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
        """The last message's text, or an empty string."""
        return text_in(self.messages[-1].get("content")) if self.messages else ""

    @property
    def last_tool_result(self) -> str | None:
        """The text of the last message with the role `tool`, or None if there is none."""
        for message in reversed(self.messages):
            if message.get("role") == "tool":
                return text_in(message.get("content"))
        return None

    def body(self) -> dict[str, JSON]:
        """Return the request's JSON body, with keys in STATEK's order (behaviour 12)."""
        return FORMATS[self.wire].request_body(self, self.options)


@dataclass(frozen=True, slots=True)
class RawReply:
    """A successful HTTP response: the raw body, and the virtual seconds until it arrived."""

    body: bytes
    latency: float = 0.0


class Provider(Protocol):
    """The interface for an LLM provider.

    `complete` returns the raw body of a successful response, or raises a `ProviderFailure` such as `ProviderHTTPError`.
    It must not sleep or read a clock; `latency` is the time that the response took.
    """

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the answer to one request."""


CLIENT_TIMEOUT: Final = 60.0
"""The virtual seconds that the client waits for a response."""

RETRY_DELAYS: Final = (3.0, 15.0)
"""The virtual seconds between the first and second attempt, and between the second and third."""

MAX_ATTEMPTS: Final = len(RETRY_DELAYS) + 1
"""The attempts per LLM call; if the last attempt fails, the job ends."""


def is_temporary(failure: ProviderFailure) -> bool:
    """Return whether STATEK retries after `failure`: no connection, a timeout, or HTTP 408, 429 and 500 to 599."""
    if isinstance(failure, ProviderHTTPError):
        return failure.status in (408, 429) or 500 <= failure.status <= 599
    return isinstance(failure, ProviderTimeout | ProviderUnreachable)


def retry_delay(failure: ProviderFailure, attempt: int) -> float | None:
    """Return the delay in virtual seconds after the one-based `attempt`, or None if the client gives up."""
    if attempt < 1:
        raise ValueError(f"attempts start at 1, got {attempt!r}")
    if attempt >= MAX_ATTEMPTS or not is_temporary(failure):
        return None
    return RETRY_DELAYS[attempt - 1]


def bug_of(who: str, error: BaseException) -> ProviderBug:
    """Return the `ProviderBug` for an exception from the provider named `who` that is not a `ProviderFailure`."""
    shown = f"{type(error).__name__}: {error}".removesuffix(": ")
    return ProviderBug(
        f"{who} raised {shown}; a failing provider must raise ProviderHTTPError, ProviderTimeout or ProviderUnreachable"
    )


def checked_reply(who: str, reply: object) -> RawReply:
    """Return `reply` if it is a `RawReply`; otherwise raise a `ProviderBug` for the provider named `who`."""
    if not isinstance(reply, RawReply):
        raise ProviderBug(f"{who} returned {reply!r}, expected a RawReply")
    return reply


def ask(provider: Provider, request: ChatRequest) -> RawReply:
    """Return the provider's answer, as STATEK's client does. A latency above `CLIENT_TIMEOUT` raises `ProviderTimeout`.

    The timeout's message is empty, as in httpx's `ReadTimeout`. An exception that is not a `StatekSimError` becomes a
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
    checked_reply(f"{type(provider).__name__}.complete", reply)
    if reply.latency > CLIENT_TIMEOUT:
        raise ProviderTimeout("", latency=CLIENT_TIMEOUT)
    return reply
