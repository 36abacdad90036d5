"""httpx and httpx2, on which the openai and anthropic packages stand: their requests played and recorded.

A recording is played without vcrpy, which would take as long over the headers as all else takes, and is claimed in
one step, so that threads cannot both get it. What goes live is recorded by vcrpy's own function, with the pieces of
the body timed as they pass.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

from vcr.request import Request as VcrRequest
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request

from statek_sim.cassettes.exchange import Chunk, Request, Response
from statek_sim.cassettes.redaction import plain_uri
from statek_sim.cassettes.session import CassetteSession
from statek_sim.cassettes.vcr_adapter import played, reason, request_of, response_of

PACKAGES: Final = ("httpx", "httpx2")
"""The packages, which are one in all that is used here."""

_ENCODINGS: Final = "gzip, deflate"
"""What a provider may send while recording: everyone can undo these."""

# The transports that reach the network; those for tests of a server's own code are left alone.
_SYNC: Final = ("HTTPTransport", "handle_request")
_ASYNC: Final = ("AsyncHTTPTransport", "handle_async_request")

Handler = Callable[[Any, Any], Any]
"""A transport's method: takes the transport and a request, returns a response, or a coroutine of one."""


def patches(session: CassetteSession) -> Iterator[tuple[type, str, Handler]]:
    """Yield what is to be replaced in the packages that are there, for as long as the session is open."""
    for name in PACKAGES:
        package = sys.modules.get(name)
        for (owner, method), handler in ((_SYNC, _handler), (_ASYNC, _async_handler)) if package else ():
            transport = getattr(package, owner)
            yield transport, method, handler(session, package, getattr(transport, method))


def _handler(session: CassetteSession, package: Any, real: Handler) -> Handler:
    def handle_request(transport: Any, request: Any) -> Any:
        body = b"".join(request.stream)
        request.stream = package.ByteStream(body)
        response = played(session, _request(request, body))
        if response is not None:
            return _replayed(package, response)
        call = _LiveCall(session, real)
        return vcr_handle_request(call, call.send, package)(transport, request)

    return handle_request


def _async_handler(session: CassetteSession, package: Any, real: Handler) -> Handler:
    async def handle_async_request(transport: Any, request: Any) -> Any:
        body = b"".join([piece async for piece in request.stream])
        request.stream = package.ByteStream(body)
        response = played(session, _request(request, body))
        if response is not None:
            return _replayed(package, response)
        call = _LiveCall(session, real)
        return await vcr_handle_async_request(call, call.send_async, package)(transport, request)

    return handle_async_request


def _request(request: Any, body: bytes) -> Request:
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
    return Request(method=request.method, uri=str(request.url), headers=headers, body=body)


def _replayed(package: Any, response: Response) -> Any:
    """Return a response of the package; as a stream, because a client closes what it was sent."""
    return package.Response(
        response.status,
        headers=response.headers,
        stream=package.ByteStream(response.body),
        extensions={"reason_phrase": response.reason.encode("latin-1", "replace")}
        if response.reason
        else None,
    )


class _LiveCall:
    """One request that goes live: what vcrpy calls a cassette, which has nothing to play."""

    write_protected = False

    def __init__(self, session: CassetteSession, real: Handler) -> None:
        self._session = session
        self._real = real
        self._title = ""
        self._sent = 0.0
        self._chunks: list[Chunk] = []

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Whether the request is recorded; it was looked for already."""
        return False

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what was answered, with its timing if it came in pieces."""
        self._session.record(request_of(request), response_of(response, tuple(self._chunks)))

    def send(self, transport: Any, request: Any) -> Any:
        """Send the request, and note when the pieces of the body come."""
        self._start(request)
        response = self._real(transport, request)
        response.stream = _Pieces(response.stream, self._note, self._broke_off)
        return response

    async def send_async(self, transport: Any, request: Any) -> Any:
        """Send the request, and note when the pieces of the body come."""
        self._start(request)
        response = await self._real(transport, request)
        response.stream = _Pieces(response.stream, self._note, self._broke_off)
        return response

    def _start(self, request: Any) -> None:
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = _ENCODINGS
        self._title = f"{request.method} {plain_uri(str(request.url), self._session.matching.own)}"
        self._sent = monotonic()

    def _broke_off(self, error: BaseException) -> None:
        size = sum(chunk.size for chunk in self._chunks)
        self._session.refuse(f"{self._title}: its answer broke off after {size} bytes: {reason(error)}")

    def _note(self, size: int) -> None:
        self._chunks.append(Chunk(round(monotonic() - self._sent, 3), size))


class _Pieces:
    """A response's stream that tells the size of each piece as it passes, and what breaks it."""

    def __init__(
        self, stream: Any, note: Callable[[int], None], broke_off: Callable[[BaseException], None]
    ) -> None:
        self._stream = stream
        self._note = note
        self._broke_off = broke_off

    def __iter__(self) -> Iterator[bytes]:
        with self._told():
            for piece in self._stream:
                self._note(len(piece))
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._told():
            async for piece in self._stream:
                self._note(len(piece))
                yield piece

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # A task that is cancelled, or a test that runs out of time, leaves no recording either.
            self._broke_off(error)
            raise

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()
