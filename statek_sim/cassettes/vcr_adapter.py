"""Requests, responses and misses on their way through vcrpy and the HTTP clients that it patches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from vcr.request import Request as VcrRequest
from vcr.util import read_body

from statek_sim.cassettes.bodies import Undecodable, opened
from statek_sim.cassettes.exchange import Chunk, Headers, Request, Response, header, without
from statek_sim.cassettes.session import CassetteSession
from statek_sim.errors import BadInput, CassetteMiss

_ENCODING: Final = "content-encoding"


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


def reason(error: BaseException) -> str:
    """Return what an error says; its name where that is nothing, as for a task that is cancelled."""
    return str(error) or type(error).__name__


def request_of(request: VcrRequest) -> Request:
    """Return a request of vcrpy as ours; a body that is a file or an iterator is read."""
    body = read_body(request)
    if isinstance(body, str):
        body = body.encode("utf-8")
    return Request(
        method=request.method,
        uri=request.uri,
        headers=_headers(request.headers),
        body=bytes(body) if body else b"",
    )


def response_of(response: Mapping[str, Any], chunks: tuple[Chunk, ...] = ()) -> Response:
    """Return a live response without content encoding; with it, and its header, if it cannot be undone."""
    headers = _headers(response["headers"])
    # aiohttp reads nothing of a redirect that it follows.
    body = response["body"].get("string") or b""
    try:
        body = opened(body, header(headers, _ENCODING) or "")
        headers = without(headers, [_ENCODING])
    except Undecodable:
        pass
    made = Response(
        status=response["status"]["code"],
        reason=response["status"]["message"] or "",
        headers=headers,
        body=body,
    )
    return replace(made, chunks=chunks) if made.is_stream else made


def for_vcrpy(response: Response) -> dict[str, object]:
    """Return a response of ours as vcrpy plays it."""
    headers: dict[str, list[str]] = {}
    for name, value in response.headers:
        headers.setdefault(name, []).append(value)
    return {
        "status": {"code": response.status, "message": response.reason},
        "headers": headers,
        "body": {"string": response.body},
    }


def _headers(headers: Mapping[str, Any]) -> Headers:
    return tuple(
        (str(name), _text(value))
        for name, values in headers.items()
        for value in (values if isinstance(values, list | tuple) else [values])
    )


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
