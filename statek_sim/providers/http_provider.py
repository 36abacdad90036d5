"""A provider behind HTTP, and the interface of its transport: one HTTP exchange.

A live transport sends requests, a recording one also stores the exchange, and a replaying one looks it up; a test
passes a fake. The provider does not use sockets, and the transport does not interpret bodies. Errors for unsuccessful
statuses use httpx's texts.

STATEK's own variables configure a provider's address and key (behaviour 11): `<P>_API_URL` is the full address of the
chat endpoint, and `<P>_USE_PROMPT_CACHING` enables Anthropic's caching. The key is read here and only used in a
request's headers.
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
    """One HTTP request with its real headers, including credentials."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One HTTP response of any status, with its body decompressed.

    `latency` is the seconds until it was complete; in a replay they pass in virtual time.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0


class HttpTransport(Protocol):
    """Carries requests and returns responses of any status.

    Raises `ProviderTimeout` or `ProviderUnreachable` without a response.
    """

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request and return the whole answer."""


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
"""Reason phrases of redirects, client errors and server errors."""

_KINDS: Final = {1: "Informational response", 3: "Redirect response", 4: "Client error", 5: "Server error"}
_REDIRECTS: Final = (301, 302, 303, 307, 308)


def http_error_text(status: int, url: str = DEFAULT_URL, *, location: str | None = None) -> str:
    """Return httpx 0.28's error text for a status outside 200 to 299, which becomes the job's error in STATEK.

    `location` is the target of a redirect; STATEK's client does not follow it.
    """
    kind = _KINDS.get(status // 100, "Invalid status code")
    redirect = f"Redirect location: '{location}'\n" if location is not None and status in _REDIRECTS else ""
    return (
        f"{kind} '{status} {PHRASES.get(status, '')}' for url '{url}'\n{redirect}"
        f"For more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/{status}"
    )


class HttpLLM:
    """Sends each request in its own format, as STATEK does, byte for byte."""

    def __init__(self, transport: HttpTransport, accesses: Accesses) -> None:
        self._transport = transport
        self._accesses = accesses

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request; an unsuccessful status is a `ProviderHTTPError` with httpx's text."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        response = self._transport.send(sent)
        check_status(sent, response)
        return RawReply(response.body, response.latency)


def http_request(request: ChatRequest, access: Access) -> HttpRequest:
    """Return the HTTP request of an LLM call, in compact UTF-8 JSON as httpx 0.28 writes it."""
    wire = FORMATS[request.wire]
    body = json.dumps(request.body(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return HttpRequest(
        method="POST",
        url=wire.request_url(access.api_url, request.model),
        headers=wire.request_headers(access.api_key, request.options),
        body=body.encode(),
    )


def check_status(request: HttpRequest, response: HttpResponse) -> None:
    """Raise `ProviderHTTPError` for a status outside 200 to 299, as STATEK's client does."""
    if not 200 <= response.status <= 299:
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise ProviderHTTPError(
            http_error_text(response.status, request.url, location=headers.get("location")),
            status=response.status,
            latency=response.latency,
            retry_after=_seconds(headers.get("retry-after", "")),
        )


def _seconds(retry_after: str) -> float | None:
    """Return a `Retry-After` in seconds; a date is ignored, because no clock is read here."""
    return float(retry_after) if retry_after.replace(".", "", 1).isdecimal() else None


URL: Final = "_API_URL"
KEY: Final = "_API_KEY"
CACHING: Final = "_USE_PROMPT_CACHING"
RESPONSE_FORMAT: Final = "_RESPONSE_FORMAT_FILE"

_ADDRESS: Final = re.compile(r"https?://[^/\s]+", re.IGNORECASE)
_TRUE: Final = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class Access:
    """The access data of one provider. The key is left out of its repr."""

    api_url: str
    api_key: str = field(repr=False)


Accesses = Callable[[str], Access]
"""Returns the access to a provider by its name in upper case."""


def access_from(environment: Mapping[str, str], provider: str) -> Access:
    """Return the access to a provider from the environment; raises `BadSetting` with the missing variables.

    `<P>_RESPONSE_FORMAT_FILE`, which makes STATEK send a schema, is unsupported and refused.
    """
    name = provider.upper()
    missing = [name + suffix for suffix in (URL, KEY) if not environment.get(name + suffix)]
    if missing:
        raise BadSetting(
            f"cannot send a request to {name}: set {' and '.join(missing)}, as for STATEK itself "
            "(the URL is the whole address of its chat endpoint)"
        )
    url = environment[name + URL]
    if not _ADDRESS.match(url):
        raise BadSetting(
            f"{name}{URL}={url!r}: expected the whole address of a chat endpoint, like https://host/path"
        )
    if environment.get(name + RESPONSE_FORMAT):
        raise BadSetting(f"{name}{RESPONSE_FORMAT} is not supported: unset it")
    return Access(url, environment[name + KEY])


def client_options(environment: Mapping[str, str]) -> ClientOptions:
    """Return the environment's settings for requests; only Anthropic's format uses them."""
    settings = (environment.get(provider + CACHING, "") for provider in ANTHROPIC_PROVIDERS)
    return ClientOptions(prompt_caching=any(text.lower() in _TRUE for text in settings))


class Exchanges(Protocol):
    """The destination of one run's requests, on either backend."""

    @property
    def transport(self) -> HttpTransport:
        """The transport of the requests."""

    @property
    def environment(self) -> Mapping[str, str]:
        """STATEK's variables of the providers: `<P>_API_URL`, `<P>_API_KEY`, `<P>_USE_PROMPT_CACHING`."""

    def check_finished(self) -> None:
        """Raise a `StatekSimError` if the run left something unfinished, such as unplayed recordings."""
