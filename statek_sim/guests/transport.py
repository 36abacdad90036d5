"""The guest's LLM as a transport of httpx, or of httpx2: what every SDK that stands on them takes for the network.

The module is an argument: a guest brings its own, and nothing is imported here.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from statek_sim.guests.guest import Delivered, Guest, delivered
from statek_sim.server.routes import route

_UNTIL: Final = 60.0
"""Seconds that a client waits which says nothing about it."""


def client_of(guest: Guest, http: Any, **options: Any) -> Any:
    """Return an `AsyncClient` of `http`, the module httpx or httpx2, whose requests the guest's script answers.

    `options` are the client's own. Time that answers take is slept, so virtual inside `Guest.run`. A silent provider
    is a `ReadTimeout` when the client's read timeout is over, a connection that breaks a `ReadError`.
    """

    class Transport(http.AsyncBaseTransport):  # type: ignore[misc]  # the base is the argument's
        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            target = request.url.raw_path.decode()
            answer = guest.answer(
                target, {key.lower(): value for key, value in request.headers.items()}, body
            )
            limit = request.extensions.get("timeout", {}).get("read") or _UNTIL
            delivery = delivered(answer, timeout=limit)
            await asyncio.sleep(delivery.seconds)
            guest.heard(delivery, route("POST", target).wire)
            if delivery.status is None:
                raise http.ReadTimeout("", request=request)
            if delivery.broken:
                raise http.ReadError("", request=request)
            return http.Response(
                delivery.status, headers=_headers(delivery), content=delivery.body, request=request
            )

    return http.AsyncClient(transport=Transport(), **options)


def _headers(delivery: Delivered) -> dict[str, str]:
    return {**dict(delivery.headers), "content-type": delivery.content_type}
