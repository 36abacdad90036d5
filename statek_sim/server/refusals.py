"""How a request is refused that no handler has seen: in the shape of the provider whose path it names."""

from __future__ import annotations

from typing import Final

from statek_sim.providers.wire.formats import FORMATS
from statek_sim.server.answering import json_text
from statek_sim.server.exchange import Whole
from statek_sim.server.routes import wire_of

_PLAIN: Final = b'{"error":{"message":"%s","type":"http_error"}}'


def refused(status: int, message: str, target: str) -> Whole:
    """Return the answer; `target` is as much of it as is known, which may be nothing."""
    wire = wire_of(target)
    plain = wire in ("openai", "responses")
    body = _PLAIN % json_text(message) if plain else FORMATS[wire].error_body(status, message)
    return Whole(status=status, body=body)
