"""Requests to real providers over HTTP, synchronous or under asyncio.

Requests are sent with httpx, as in STATEK, so that patches to httpx (such as vcrpy's) record the same traffic in both
cases.
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
"""Headers that describe how a body was transferred; stored bodies are complete and decompressed."""

Permit = Callable[[], AbstractContextManager[object]]


class LiveTransport:
    """Sends requests to real providers.

    Inside `forbid_network`, requests are refused unless `permit` is `network.permit_network`, which is used for
    recording. A response takes no virtual time, so that a recorded run and its replay have equal traces. `timeout` is
    in seconds.
    """

    def __init__(self, *, permit: Permit = nullcontext, timeout: float = CLIENT_TIMEOUT) -> None:
        self._permit = permit
        self._timeout = timeout

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request; raises `ProviderTimeout`, with an empty message as in STATEK, or `ProviderUnreachable`."""
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
    """Sends requests to real providers under asyncio, with exactly the bytes that STATEK would send.

    `accesses` returns a provider's URL and key. All requests use the same httpx client, which `aclose` closes; pass
    `client` to replace the default client.
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
        """Return the answer to one request; a timeout, connection error or error status raises a `ProviderFailure`."""
        sent = http_request(request, self._accesses(request.provider.upper()))
        try:
            response = await self._client.request(
                sent.method, sent.url, headers=dict(sent.headers), content=sent.body
            )
        except httpx.TimeoutException as failure:
            raise ProviderTimeout("") from failure
        except httpx.TransportError as failure:
            # httpx has no message for a connection that was lost.
            raise ProviderUnreachable(str(failure) or type(failure).__name__) from failure
        check_status(
            sent,
            HttpResponse(status=response.status_code, headers=dict(response.headers), body=response.content),
        )
        return RawReply(response.content)

    async def aclose(self) -> None:
        """Close the httpx client and its connections."""
        await self._client.aclose()
