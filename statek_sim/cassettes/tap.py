"""vcrpy between HTTP clients and the network, with a session of ours in the place of its cassette.

vcrpy knows how to take hold of `http.client`, requests, urllib3, aiohttp and others, and how to give each of them a
response that it takes for real. httpx and httpx2, on which the openai and anthropic packages stand, are taken hold
of with vcrpy's own functions too, but call by call: so a recording is claimed once under threads, and the pieces of
a live stream are timed. The only place that knows vcrpy.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from time import monotonic
from types import ModuleType
from typing import Any, Final

from vcr.filters import AVAILABLE_DECOMPRESSORS
from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrMode
from vcr.request import Request as VcrRequest
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request
from vcr.util import read_body

from statek_sim.cassettes.exchange import Chunk, Headers, Request, Response, header
from statek_sim.cassettes.session import CassetteSession
from statek_sim.errors import BadInput, CassetteMiss

_LIKE_HTTPX: Final = ("httpx", "httpx2")
_ENCODINGS: Final = "gzip, deflate"
"""What a provider may send while recording: everyone can undo these."""
_REAL: Final = (("HTTPTransport", "handle_request"), ("AsyncHTTPTransport", "handle_async_request"))
"""The transports that reach the network; those for tests of a server's own code are left alone."""


class UnrecordedRequest(BaseException):
    """A client sent a request that the cassette has no recording of.

    Not an `Exception`: clients retry on those and then tell of a connection error, and agents live on with one. A
    missing recording ends the test.
    """


@contextmanager
def tapped(session: CassetteSession) -> Iterator[None]:
    """Answer all HTTP requests of this process from the session, and record what goes live, inside the block."""
    with ExitStack() as stack:
        deck = _Deck(session)
        for patcher in CassettePatcherBuilder(deck).build():
            stack.enter_context(patcher)
        yield


class _Deck:
    """What vcrpy calls a cassette, as far as it asks for one."""

    record_mode = VcrMode.NEW_EPISODES
    rewound = True
    # vcrpy would raise its own error for a request that is not recorded; ours comes out of `play_response`.
    write_protected = False
    skip_patchers = _LIKE_HTTPX

    def __init__(self, session: CassetteSession) -> None:
        self._session = session
        self._path = str(session.path)
        self.custom_patches = tuple(_patches(session))

    def filter_request(self, request: VcrRequest) -> VcrRequest:
        """Return the request: every one counts."""
        return request

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Whether the request is not to go live: it is recorded, or nothing may be recorded."""
        return not self._session.may_record or self._session.can_play(_request(request))

    def play_response(self, request: VcrRequest) -> dict[str, object]:
        """Return the recorded response as vcrpy has it."""
        response = _played(self._session, request)
        if response is None:
            raise UnrecordedRequest(f"another thread played the last recording of {request}")
        return response

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live."""
        self._session.record(_request(request), _response(response, ()))


class _Call:
    """One call of an httpx client: what vcrpy calls a cassette, for one request."""

    write_protected = False

    def __init__(self, session: CassetteSession) -> None:
        self._session = session
        self._response: dict[str, object] | None = None
        self._chunks: list[Chunk] = []
        self._sent = 0.0

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Claim the recording, if there is one."""
        self._response = _played(self._session, request)
        return self._response is not None

    def play_response(self, request: VcrRequest) -> dict[str, object] | None:
        """Return what was claimed."""
        return self._response

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live, with its timing if it came in pieces."""
        self._session.record(_request(request), _response(response, tuple(self._chunks)))

    def timed(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return the transport's real method, which notes when the pieces of the body come."""

        def send(transport: object, request: Any) -> Any:
            self._start(request)
            response = real(transport, request)
            response.stream = _Pieces(response.stream, self._note)
            return response

        return send

    def timed_async(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return the transport's real coroutine, which notes when the pieces of the body come."""

        async def send(transport: object, request: Any) -> Any:
            self._start(request)
            response = await real(transport, request)
            response.stream = _Pieces(response.stream, self._note)
            return response

        return send

    def _start(self, request: Any) -> None:
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = _ENCODINGS
        self._sent = monotonic()

    def _note(self, size: int) -> None:
        self._chunks.append(Chunk(round(monotonic() - self._sent, 3), size))


class _Pieces:
    """A response's stream that tells the size of each piece as it passes."""

    def __init__(self, stream: Any, note: Callable[[int], None]) -> None:
        self._stream = stream
        self._note = note

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._note(len(piece))
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._note(len(piece))
            yield piece

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _patches(session: CassetteSession) -> Iterator[tuple[type, str, Callable[..., object]]]:
    """Yield what is to be replaced in the httpx-like packages that the process uses."""
    for name in _LIKE_HTTPX:
        module = _imported(name)
        for owner, method in _REAL if module else ():
            transport = getattr(module, owner)
            yield transport, method, _handler(session, module, getattr(transport, method))


def _imported(name: str) -> ModuleType | None:
    """Return a package that is installed; vcrpy has imported it."""
    return sys.modules.get(name)


def _handler(
    session: CassetteSession, module: ModuleType | None, real: Callable[..., Any]
) -> Callable[..., Any]:
    if real.__name__ == "handle_request":

        def handle(transport: object, request: object) -> object:
            call = _Call(session)
            return vcr_handle_request(call, call.timed(real), module)(transport, request)

        return handle

    async def handle_async(transport: object, request: object) -> object:
        call = _Call(session)
        return await vcr_handle_async_request(call, call.timed_async(real), module)(transport, request)

    return handle_async


def _played(session: CassetteSession, request: VcrRequest) -> dict[str, object] | None:
    try:
        response = session.play(_request(request))
    except CassetteMiss as miss:
        raise UnrecordedRequest(str(miss)) from None
    return None if response is None else _for_vcrpy(response)


def _request(request: VcrRequest) -> Request:
    body = read_body(request)
    if isinstance(body, str):
        body = body.encode("utf-8")
    return Request(
        method=request.method,
        uri=request.uri,
        headers=tuple((str(name), _text(value)) for name, value in request.headers.items()),
        body=bytes(body) if body else b"",
    )


def _response(response: Mapping[str, Any], chunks: tuple[Chunk, ...]) -> Response:
    """Return a live response without content encoding, so that its text can be searched and read."""
    headers = _headers(response["headers"])
    made = Response(
        status=response["status"]["code"],
        reason=response["status"]["message"] or "",
        headers=headers,
        body=_decoded(response["body"]["string"] or b"", header(headers, "content-encoding") or ""),
    )
    return replace(made, chunks=chunks) if made.is_stream else made


def _decoded(body: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding; `BadInput` for one that cannot be undone here."""
    name = encoding.strip().lower()
    if name in ("", "identity") or not body:
        return body
    if name not in AVAILABLE_DECOMPRESSORS:
        raise BadInput(
            f"cannot record a body with content encoding {encoding!r}: secrets in it would not be seen"
        )
    plain: bytes = AVAILABLE_DECOMPRESSORS[name](body)
    return plain


def _for_vcrpy(response: Response) -> dict[str, object]:
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
        (name, _text(value))
        for name, values in headers.items()
        for value in (values if isinstance(values, list | tuple) else [values])
    )


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
