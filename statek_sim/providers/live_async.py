"""Real HTTP under asyncio: a model that an asyncio driver asks, in any of the wire formats."""

from __future__ import annotations

import httpx

from statek_sim.errors import ProviderTimeout, ProviderUnreachable
from statek_sim.providers.access import Accesses
from statek_sim.providers.http_transport import HttpResponse
from statek_sim.providers.over_http import check_status, http_request
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.retry import CLIENT_TIMEOUT


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
        asked = http_request(request, self._accesses(request.provider.upper()))
        try:
            response = await self._client.request(
                asked.method, asked.url, headers=dict(asked.headers), content=asked.body
            )
        except httpx.TimeoutException as failure:
            raise ProviderTimeout("") from failure
        except httpx.TransportError as failure:
            # A connection that broke has no words in httpx.
            raise ProviderUnreachable(str(failure) or type(failure).__name__) from failure
        check_status(
            asked,
            HttpResponse(status=response.status_code, headers=dict(response.headers), body=response.content),
        )
        return RawReply(response.content)

    async def aclose(self) -> None:
        """Close the client and its connections."""
        await self._client.aclose()
