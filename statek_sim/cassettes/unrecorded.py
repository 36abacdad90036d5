"""A miss, on its way through an HTTP client."""

from __future__ import annotations

from statek_sim.cassettes.exchange import Request, Response
from statek_sim.cassettes.session import CassetteSession
from statek_sim.errors import BadInput, CassetteMiss


class UnrecordedRequest(BaseException):
    """A client sent a request that the cassette has no recording of.

    Not an `Exception`: clients retry on those and then tell of a connection error, and agents live on with one. A
    missing recording ends the test.
    """


def played(session: CassetteSession, request: Request) -> Response | None:
    """Return the recorded response, or None for a request that is to go live.

    `UnrecordedRequest` for a miss, and where a team's own redaction fails.
    """
    try:
        return session.play(request)
    except (BadInput, CassetteMiss) as miss:
        raise UnrecordedRequest(str(miss)) from None
