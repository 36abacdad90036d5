"""A provider over HTTP, and the interface for the transport that sends its requests.

A transport sends, records or replays requests, or fakes them in a test; it does not interpret bodies. Errors for
unsuccessful statuses have the same messages as in httpx.

A provider is configured by STATEK's environment variables (behaviour 11), which start with its name. `OPENAI_API_URL`
is the full URL of the chat endpoint. `OPENAI_API_KEY` is the key, which is used only in request headers.
`CLAUDE_USE_PROMPT_CACHING` enables Anthropic's prompt caching.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Protocol

from statek_sim.errors import BadSetting, ProviderHTTPError
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.wire.format import ANTHROPIC_PROVIDERS, DEFAULT_URL, FORMATS
from statek_sim.providers.wire.request import ClientOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """An HTTP request with all its headers, including credentials."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """An HTTP response of any status, with a decompressed body.

    `latency` is the number of seconds until the response was complete; in a replay, they pass in virtual time.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0


class HttpTransport(Protocol):
    """Sends HTTP requests and returns responses of any status.

    Raises `ProviderTimeout` or `ProviderUnreachable` if no response arrives.
    """

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and return the complete response."""


PHRASES: Final[Mapping[int, str]] = MappingProxyType(
    {status.value: status.phrase for status in HTTPStatus if status >= 300}
    # Phrases that differ in httpx 0.28, or between Python versions.
    | {
        413: "Request Entity Too Large",
        414: "Request-URI Too Long",
        416: "Requested Range Not Satisfiable",
        418: "I'm a teapot",
        422: "Unprocessable Entity",
    }
)
"""Reason phrases for HTTP statuses of 300 and above, as in httpx 0.28."""

_KINDS: Final = {1: "Informational response", 3: "Redirect response", 4: "Client error", 5: "Server error"}
_REDIRECTS: Final = (301, 302, 303, 307, 308)


def http_error_text(status: int, url: str = DEFAULT_URL, *, location: str | None = None) -> str:
    """Return httpx 0.28's error message for a status other than 2xx, which STATEK uses as the job's error.

    `location` is the target of a redirect, which STATEK's client does not follow.
    """
    kind = _KINDS.get(status // 100, "Invalid status code")
    redirect = f"Redirect location: '{location}'\n" if location is not None and status in _REDIRECTS else ""
    return (
        f"{kind} '{status} {PHRASES.get(status, '')}' for url '{url}'\n{redirect}"
        f"For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/{status}"
    )


class HttpLLM:
    """A provider that sends requests through a transport, with exactly the bytes that STATEK would send."""

    def __init__(self, transport: HttpTransport, accesses: Accesses) -> None:
        self._transport = transport
        self._accesses = accesses

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the answer to a request; an unsuccessful status raises `ProviderHTTPError` with httpx's message."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        response = self._transport.send(sent)
        check_status(sent, response)
        return RawReply(response.body, response.latency)


def http_request(request: ChatRequest, access: Access) -> HttpRequest:
    """Return the HTTP request for an LLM call, with a body in compact UTF-8 JSON as written by httpx 0.28."""
    wire = FORMATS[request.wire]
    body = json.dumps(request.body(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return HttpRequest(
        method="POST",
        url=wire.request_url(access.api_url, request.model),
        headers=wire.request_headers(access.api_key, request.options),
        body=body.encode(),
    )


def check_status(request: HttpRequest, response: HttpResponse) -> None:
    """Raise `ProviderHTTPError` for a status other than 2xx, as STATEK's client does."""
    if not 200 <= response.status <= 299:
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise ProviderHTTPError(
            http_error_text(response.status, request.url, location=headers.get("location")),
            status=response.status,
            latency=response.latency,
            retry_after=_seconds(headers.get("retry-after", "")),
        )


def _seconds(retry_after: str) -> float | None:
    """Return the seconds in a `Retry-After` header, or None for a date, which would require a clock."""
    return float(retry_after) if retry_after.replace(".", "", 1).isdecimal() else None


URL: Final = "_API_URL"
KEY: Final = "_API_KEY"
CACHING: Final = "_USE_PROMPT_CACHING"
RESPONSE_FORMAT: Final = "_RESPONSE_FORMAT_FILE"

_ADDRESS: Final = re.compile(r"https?://[^/\s]+", re.IGNORECASE)
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class Access:
    """A provider's URL and API key; the repr omits the key."""

    api_url: str
    api_key: str = field(repr=False)


Accesses = Callable[[str], Access]
"""Returns a provider's `Access`, given its name in upper case."""


def access_from(environment: Mapping[str, str], provider: str) -> Access:
    """Return a provider's URL and key from the environment.

    Raises `BadSetting` for a missing or invalid variable, and for a variable such as `OPENAI_RESPONSE_FORMAT_FILE`,
    which would make STATEK send a schema.
    """
    name = provider.upper()
    missing = [name + suffix for suffix in (URL, KEY) if not environment.get(name + suffix)]
    if missing:
        raise BadSetting(
            f"cannot send a request to {name}: set {' and '.join(missing)}, just as you would for STATEK itself (the "
            "URL must include the chat endpoint path)"
        )
    url = environment[name + URL]
    if not _ADDRESS.match(url):
        raise BadSetting(
            f"{name}{URL}={url!r}: expected the full URL of a chat endpoint, such as https://host/path"
        )
    if environment.get(name + RESPONSE_FORMAT):
        raise BadSetting(f"{name}{RESPONSE_FORMAT} is not supported; unset it")
    return Access(url, environment[name + KEY])


def client_options(environment: Mapping[str, str]) -> ClientOptions:
    """Return the request options set in the environment; only Anthropic's format uses them."""
    settings = (environment.get(provider + CACHING, "") for provider in ANTHROPIC_PROVIDERS)
    return ClientOptions(prompt_caching=any(text.lower() in _TRUE for text in settings))


class Exchanges(Protocol):
    """The transport and the settings for the requests in one run, on any backend."""

    @property
    def transport(self) -> HttpTransport:
        """The transport that sends the requests."""

    @property
    def environment(self) -> Mapping[str, str]:
        """STATEK's provider variables, such as `OPENAI_API_URL` and `OPENAI_API_KEY`."""

    def check_finished(self) -> None:
        """Raise a `StatekSimError` if something is unfinished after the run, such as unplayed recordings."""
