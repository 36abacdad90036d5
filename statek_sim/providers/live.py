"""Real HTTP: the only file that sends requests to providers, plainly or from an asyncio driver.

It stands on httpx, as STATEK does, so what hooks into httpx (vcrpy, for one) sees the same traffic from both.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import httpx

from statek_sim.errors import ProviderTimeout, ProviderUnreachable
from statek_sim.providers.http_provider import Accesses, HttpRequest, HttpResponse, check_status, http_request
from statek_sim.providers.protocol import CLIENT_TIMEOUT, ChatRequest, RawReply

_OF_THE_WAY: Final = ("connection", "content-encoding", "content-length", "transfer-encoding")
"""Headers about how the body came, which is whole and decompressed now."""

Permit = Callable[[], AbstractContextManager[object]]


class LiveTransport:
    """Sends requests for real.

    Inside `forbid_network` they are refused all the same, unless `permit` is `network.permit_network`: only what
    records passes that. No virtual time passes while an answer comes, so that a run that records has the trace that
    its recording will have.
    """

    def __init__(self, *, permit: Permit = nullcontext, timeout: float = CLIENT_TIMEOUT) -> None:
        self._permit = permit
        self._timeout = timeout

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request. A `ProviderTimeout` has no text, like that of STATEK's asynchronous client."""
        try:
            with self._permit(), httpx.Client(timeout=self._timeout) as client:
                response = client.request(
                    request.method, request.url, headers=dict(request.headers), content=request.body
                )
        except httpx.TimeoutException as failure:
            raise ProviderTimeout("") from failure
        except httpx.TransportError as failure:
            raise ProviderUnreachable(str(failure)) from failure
        headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_WAY}
        return HttpResponse(status=response.status_code, headers=headers, body=response.content)


class AsyncHttpLLM:
    """Sends each request in its own format, as STATEK does, byte for byte; one client for all, closed with `aclose`.

    `accesses` says where a provider is and with which key; `client` takes the place of one that is made here.
    """

    def __init__(
        self,
        accesses: Accesses,
        *,
        client: httpx.AsyncClient | None = None,
        timeout: float = CLIENT_TIMEOUT,
    ) -> None:
        self._accesses = accesses
        self._client = client or httpx.AsyncClient(timeout=timeout)

    async def __call__(self, request: ChatRequest) -> RawReply:
        """Answer one request; what goes wrong on the way is a `ProviderFailure`."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        try:
            response = await self._client.request(
                sent.method, sent.url, headers=dict(sent.headers), content=sent.body
            )
        except httpx.TimeoutException as failure:
            raise ProviderTimeout("") from failure
        except httpx.TransportError as failure:
            # A connection that broke has no words in httpx.
            raise ProviderUnreachable(str(failure) or type(failure).__name__) from failure
        check_status(
            sent,
            HttpResponse(status=response.status_code, headers=dict(response.headers), body=response.content),
        )
        return RawReply(response.content)

    async def aclose(self) -> None:
        """Close the client and its connections."""
        await self._client.aclose()
