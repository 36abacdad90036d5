"""What of a request can be read without knowing what was asked before it: no lock is needed, any thread will do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.format import FormatName
from statek_sim.server.caches import ReadRequest, read_request
from statek_sim.server.embedding import EmbeddingRequest, read_embeddings
from statek_sim.server.exchange import Incoming
from statek_sim.server.message_validation import out_of_turn
from statek_sim.server.routes import Place, Route


class EncodedBody(BadRequest):
    """A body that is compressed, or encoded in another way."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was read; `wanted` where it is for embeddings."""

    read: ReadRequest
    wanted: EmbeddingRequest | None


def read_asked(incoming: Incoming, found: Route, ignored: Collection[str]) -> Asked:
    """Read a request; `BadRequest` for what the server cannot do as well, `ValueError` for what is no JSON."""
    _check_encoding(incoming.headers.get("content-encoding", "identity"))
    wanted = None
    if found.place is Place.EMBEDDINGS:
        read, wanted = read_embeddings(found.wire, found.path, incoming.body)
    else:
        read = read_request(found.wire, found.path, incoming.body)
    _check_parameters(read, ignored)
    if wanted is None and read.asked.previous is None:
        check_turns(read, found.wire, ignored)
    return Asked(read, wanted)


def _check_encoding(encoding: str) -> None:
    if encoding.lower() not in ("identity", ""):
        raise EncodedBody(
            f"its content-encoding is {encoding[:80]!r}: send it as it is, nothing unpacks it here"
        )


def _check_parameters(read: ReadRequest, ignored: Collection[str]) -> None:
    params = read.asked
    if params.unheeded and (unheeded := [name for name in params.unheeded if name not in ignored]):
        raise BadRequest(
            f"{unheeded[0]} is nothing that this server honours: leave it out, or have it taken without heed "
            f"(script([...], ignored=[{unheeded[0]!r}]), or serve --ignore {unheeded[0]})",
            parameter=unheeded[0],
            code="unsupported_parameter",
        )
    for name, why in params.wrong:
        if name not in ignored:
            raise BadRequest(why, parameter=name, code="invalid_value")


def check_turns(read: ReadRequest, wire: FormatName, ignored: Collection[str]) -> None:
    """Refuse a conversation in which calls and results do not belong together, with `BadRequest`."""
    problem = None if "messages" in ignored else out_of_turn(read.asked.messages, wire)
    if problem is not None:
        raise BadRequest(
            f"{problem} (the provider refuses it; a server that takes it is played with "
            "script([...], ignored=['messages']), or serve --ignore messages)",
            parameter="messages",
        )
