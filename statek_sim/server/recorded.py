"""Recordings as a script: what a cassette holds, for a fake server to play."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from statek_sim.cassettes.exchange import Exchange, Response, header
from statek_sim.errors import BadRequest
from statek_sim.providers.condition import Condition, equals
from statek_sim.providers.script import Answer, HttpFault, RawBody, RawStream, Reply
from statek_sim.providers.wire.formats import FORMATS
from statek_sim.server.routes import Place, route


def replies_of(exchanges: Sequence[Exchange]) -> list[Reply]:
    """Return a reply per recorded chat request, in recorded order; requests for anything else are left out.

    A reply is for a request with the same model and the same last message. A stream keeps its pieces and their timing.
    """
    return [reply for exchange in exchanges for reply in _reply(exchange)]


def _reply(exchange: Exchange) -> Iterator[Reply]:
    request, response = exchange.request, exchange.response
    address = urlsplit(request.uri)
    found = route(request.method, f"{address.path}?{address.query}" if address.query else address.path)
    if found.place is not Place.CHAT:
        return
    try:
        asked = FORMATS[found.wire].read_request(json.loads(request.body), found.path)
    except (BadRequest, ValueError):
        return
    condition = Condition(last_message=equals(asked.last_message), model=equals(asked.model))
    yield Reply(answer=_answer(response), condition=condition)


def _answer(response: Response) -> Answer:
    if response.status != 200:
        after = header(response.headers, "retry-after") or ""
        return HttpFault(response.status, float(after) if after.replace(".", "", 1).isdecimal() else None)
    return RawStream(tuple(_pieces(response))) if response.is_stream else RawBody(response.body)


def _pieces(response: Response) -> Iterator[tuple[float, bytes]]:
    """Yield the pieces of a stream with the seconds before each; one piece where no timing was recorded."""
    if not response.chunks:
        yield 0.0, response.body
        return
    sent, before = 0, 0.0
    for chunk in response.chunks:
        yield max(0.0, chunk.at - before), response.body[sent : sent + chunk.size]
        sent, before = sent + chunk.size, chunk.at
    if sent < len(response.body):
        yield 0.0, response.body[sent:]
