"""Recordings as a script: what a cassette holds, for a fake server to play."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from statek_sim.cassettes.document import decoded
from statek_sim.cassettes.exchange import Exchange, Response, header
from statek_sim.errors import BadRequest
from statek_sim.providers.condition import Condition, equals
from statek_sim.providers.protocol import Place as PlaceName
from statek_sim.providers.script import Answer, HttpFault, RawBody, RawStream, Reply, Vector
from statek_sim.providers.wire.format import FORMATS
from statek_sim.server.embedding import read_embeddings
from statek_sim.server.routes import Place, Route, route


def replies_of(exchanges: Sequence[Exchange]) -> list[Reply]:
    """Return a reply per recorded request for a chat, embeddings or a count, in recorded order; others are left out.

    A reply is for a request with the same model and the same last message, or the same text to embed. A stream keeps
    its pieces and their timing. Embeddings come text by text, so that a batch may ask for them otherwise than it did.
    """
    return [reply for exchange in exchanges for reply in _replies(decoded(exchange))]


def _replies(exchange: Exchange) -> Iterator[Reply]:
    request, response = exchange.request, exchange.response
    address = urlsplit(request.uri)
    found = route(request.method, f"{address.path}?{address.query}" if address.query else address.path)
    if found.place is Place.EMBEDDINGS:
        yield from _embeddings(found, exchange)
    if found.place not in (Place.CHAT, Place.COUNT):
        return
    try:
        wire_request = FORMATS[found.wire].read_request(json.loads(request.body), found.path)
    except (BadRequest, ValueError):
        return
    condition = Condition(last_message=equals(wire_request.last_message), model=equals(wire_request.model))
    place: PlaceName = "chat" if found.place is Place.CHAT else "count_tokens"
    yield Reply(answer=_answer(response), condition=condition, place=place)


def _embeddings(found: Route, exchange: Exchange) -> Iterator[Reply]:
    """Yield a vector per text; or what came instead of vectors, for a request that begins with the first text."""
    try:
        read, wanted = read_embeddings(found.wire, found.path, exchange.request.body)
    except (BadRequest, ValueError):
        return
    model = equals(read.asked.model)
    vectors = _vectors(exchange.response) if exchange.response.status == 200 else None
    if vectors is None or len(vectors) != len(wanted.texts):
        condition = Condition(last_message=equals(wanted.texts[0]), model=model)
        yield Reply(answer=_answer(exchange.response), condition=condition, place="embeddings")
        return
    for text, vector in zip(wanted.texts, vectors, strict=True):
        condition = Condition(last_message=equals(text), model=model)
        yield Reply(answer=Vector(vector), condition=condition, place="embeddings")


def _vectors(response: Response) -> list[tuple[float, ...]] | None:
    """Return the vectors of an answer in either format; None for an answer that is none."""
    try:
        body = json.loads(response.body)
        if "data" in body:
            return [_unpacked(item["embedding"]) for item in body["data"]]
        listed = body["embeddings"] if "embeddings" in body else [body["embedding"]]
        return [_unpacked(item["values"]) for item in listed]
    except (ValueError, LookupError, TypeError, struct.error):
        return None


def _unpacked(vector: object) -> tuple[float, ...]:
    if isinstance(vector, str):
        packed = base64.b64decode(vector)
        return struct.unpack(f"<{len(packed) // 4}f", packed)
    if isinstance(vector, list):
        return tuple(float(number) for number in vector)
    raise TypeError(f"a vector is numbers or base64, not {vector!r}")


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
