"""A provider that is asked over HTTP: a live one, a recorded one, a fake one, as its transport has it."""

from __future__ import annotations

import json

from statek_sim.errors import ProviderHTTPError
from statek_sim.providers.access import Access, Accesses
from statek_sim.providers.http_status import http_error_text
from statek_sim.providers.http_transport import HttpRequest, HttpResponse, HttpTransport
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.wire.formats import FORMATS


class HttpLLM:
    """Sends each request in its own format, as STATEK does, byte for byte."""

    def __init__(self, transport: HttpTransport, accesses: Accesses) -> None:
        self._transport = transport
        self._accesses = accesses

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request; a status that is not a success is a `ProviderHTTPError` in httpx's words."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        response = self._transport.send(sent)
        check_status(sent, response)
        return RawReply(response.body, response.latency)


def http_request(request: ChatRequest, access: Access) -> HttpRequest:
    """Return the HTTP request of an LLM call: httpx 0.28 writes JSON compact, in UTF-8."""
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
    """Return a `Retry-After` that is a number of seconds; a date says nothing here, where no clock is read."""
    return float(retry_after) if retry_after.replace(".", "", 1).isdecimal() else None
