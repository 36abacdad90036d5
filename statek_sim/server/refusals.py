"""How a request is refused that no handler has seen, or that one failed at: as the provider of its path words it."""

from __future__ import annotations

from statek_sim.providers.wire.formats import FORMATS
from statek_sim.server.exchange import Whole
from statek_sim.server.routes import wire_of


def refused(status: int, message: str, target: str) -> Whole:
    """Return the answer; `target` is as much of it as is known, which may be nothing."""
    return Whole(status=status, body=FORMATS[wire_of(target)].error_body(status, message))


def failed(error: Exception, target: str) -> Whole:
    """Return the answer to a request that the server itself failed at."""
    return refused(500, f"the server failed: {type(error).__name__}: {error}", target)
