"""Real HTTP: the only file that sends requests to providers, synchronously or from an asyncio driver.

It uses httpx, as STATEK does, so hooks into httpx (such as vcrpy's) see the same traffic from both.
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
"""Headers about the transfer of the body, which is complete and decompressed now."""

Permit = Callable[[], AbstractContextManager[object]]


class LiveTransport:
    """Sends real requests.

    Inside `forbid_network`, requests are refused unless `permit` is `network.permit_network`, which only a recorder
    uses. Waiting for an answer takes no virtual time, so that the trace of a recording run equals that of its replay.
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

    `accesses` has the address and key of each provider; `client` replaces the default client.
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
        """Answer one request; errors on the way are `ProviderFailure`s."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        try:
            response = await self._client.request(
                sent.method, sent.url, headers=dict(sent.headers), content=sent.body
            )
        except httpx.TimeoutException as failure:
            raise ProviderTimeout("") from failure
        except httpx.TransportError as failure:
            # httpx has no text for a connection that broke.
            raise ProviderUnreachable(str(failure) or type(failure).__name__) from failure
        check_status(
            sent,
            HttpResponse(status=response.status_code, headers=dict(response.headers), body=response.content),
        )
        return RawReply(response.content)

    async def aclose(self) -> None:
        """Close the client and its connections."""
        await self._client.aclose()
