"""Converts a cassette to a script for the fake server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from statek_sim.cassettes.document import decoded
from statek_sim.cassettes.exchange import Exchange, Response, header
from statek_sim.errors import BadRequest
from statek_sim.providers.condition import Condition, equals
from statek_sim.providers.script import Answer, HttpError, RawBody, RawStream, Reply
from statek_sim.providers.wire.format import FORMATS
from statek_sim.server.embedding import joined, read_embeddings
from statek_sim.server.exchange import SCRIPTED_PLACES, route


def replies_of(exchanges: Sequence[Exchange]) -> list[Reply]:
    """Return a reply for each recorded request for a chat, embeddings or a token count, in recorded order.

    Each reply answers requests with the same model and last message, or with the same strings to embed. A recorded
    stream keeps its chunks and their timing. Other exchanges are skipped.
    """
    return [reply for exchange in exchanges if (reply := _reply(decoded(exchange))) is not None]


def _reply(exchange: Exchange) -> Reply | None:
    request = exchange.request
    address = urlsplit(request.uri)
    found = route(request.method, f"{address.path}?{address.query}" if address.query else address.path)
    place = SCRIPTED_PLACES.get(found.place)
    if place is None:
        return None
    try:
        if place == "embeddings":
            read, wanted = read_embeddings(found.wire, found.path, request.body)
            model, message = read.request.model, joined(wanted.texts)
        else:
            asks = FORMATS[found.wire].read_request(json.loads(request.body), found.path)
            model, message = asks.model, asks.last_message
    except (BadRequest, ValueError):
        return None
    condition = Condition(last_message=equals(message), model=equals(model))
    return Reply(answer=_answer(exchange.response), condition=condition, place=place)


def _answer(response: Response) -> Answer:
    if response.status != 200:
        after = header(response.headers, "retry-after") or ""
        return HttpError(response.status, float(after) if after.replace(".", "", 1).isdecimal() else None)
    return RawStream(tuple(_pieces(response))) if response.is_stream else RawBody(response.body)


def _pieces(response: Response) -> Iterator[tuple[float, bytes]]:
    """Yield a stream's chunks as (delay in seconds, bytes) pairs, or a single chunk if no timing was recorded."""
    if not response.chunks:
        yield 0.0, response.body
        return
    sent, before = 0, 0.0
    for chunk in response.chunks:
        yield max(0.0, chunk.at - before), response.body[sent : sent + chunk.size]
        sent, before = sent + chunk.size, chunk.at
    if sent < len(response.body):
        yield 0.0, response.body[sent:]
