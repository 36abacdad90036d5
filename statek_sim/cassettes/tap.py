"""Connects HTTP clients to a cassette session through vcrpy, where the session takes the place of a cassette.

vcrpy patches `http.client`, requests, urllib3, aiohttp and others, and creates the responses for each of them. Packages
with httpx's API are patched here.

vcrpy sees an aiohttp request's arguments before aiohttp builds the body, and a response after aiohttp has decompressed
it. This module therefore builds the body, and removes the compression header.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from http.client import HTTPResponse
from time import monotonic
from typing import Any, Final

from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrMode
from vcr.request import Request as VcrRequest
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request
from vcr.util import read_body

from statek_sim.cassettes.bodies import Undecodable, opened
from statek_sim.cassettes.exchange import Chunk, Headers, Request, Response, header, without
from statek_sim.cassettes.redaction import plain_uri
from statek_sim.cassettes.session import CassetteSession
from statek_sim.errors import BadInput, CassetteMiss

_ENCODING: Final = "content-encoding"


class UnrecordedRequest(BaseException):
    """A client sent a request that has no recording; this ends the test.

    The class is a `BaseException`, because clients retry after an `Exception`, and agents continue after one.
    """


def played(session: CassetteSession, request: Request) -> Response | None:
    """Return the recorded response, or None if the request should be sent to the provider.

    Raises `UnrecordedRequest` if there is no recording, or if a user's own redaction fails.
    """
    try:
        return session.play(request)
    except (BadInput, CassetteMiss) as miss:
        raise UnrecordedRequest(str(miss)) from None


def reason(error: BaseException) -> str:
    """Return an error's message, or its type if the message is empty (as for a cancelled task)."""
    return str(error) or type(error).__name__


def request_of(request: VcrRequest) -> Request:
    """Convert a vcrpy request to a `Request`; a body that is a file or an iterator is read."""
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
    """Convert a vcrpy response to a `Response`, with the body decoded if possible."""
    headers = _headers(response["headers"])
    # aiohttp does not read the body of a redirect that it follows.
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
    """Return a response in vcrpy's form."""
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


PACKAGES: Final = ("httpx", "httpx2")
"""Packages with httpx's API."""

_ENCODINGS: Final = "gzip, deflate"
"""The content encodings that recorded requests accept, because they can always be decoded."""

# The transports that use the network; transports for in-process servers are not patched.
_SYNC: Final = ("HTTPTransport", "handle_request")
_ASYNC: Final = ("AsyncHTTPTransport", "handle_async_request")

Handler = Callable[[Any, Any], Any]
"""A transport's method, which takes the transport and a request, and returns a response or a coroutine."""


def _httpx_patches(session: CassetteSession) -> Iterator[tuple[type, str, Handler]]:
    """Yield the patches for the imported packages in `PACKAGES`: class, method name, new method."""
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
    """Return a recorded response as the package's own response, with a stream that the client can close."""
    return package.Response(
        response.status,
        headers=response.headers,
        stream=package.ByteStream(response.body),
        extensions={"reason_phrase": response.reason.encode("latin-1", "replace")}
        if response.reason
        else None,
    )


class _LiveCall:
    """A request sent to the provider, presented to vcrpy as a cassette without recordings."""

    write_protected = False

    def __init__(self, session: CassetteSession, real: Handler) -> None:
        self._session = session
        self._real = real
        self._title = ""
        self._sent = 0.0
        self._chunks: list[Chunk] = []

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Return False, because the session has no recording of this request."""
        return False

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record the response, with the timing of its chunks."""
        self._session.record(request_of(request), response_of(response, tuple(self._chunks)))

    def send(self, transport: Any, request: Any) -> Any:
        """Send the request, and note when the chunks of the response body arrive."""
        self._start(request)
        response = self._real(transport, request)
        response.stream = _Pieces(response.stream, self._note, self._broke_off)
        return response

    async def send_async(self, transport: Any, request: Any) -> Any:
        """Send the request, and note when the chunks of the response body arrive."""
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
        self._session.refuse(f"{self._title}: the response broke off after {size} bytes: {reason(error)}")

    def _note(self, size: int) -> None:
        self._chunks.append(Chunk(round(monotonic() - self._sent, 3), size))


class _Pieces:
    """A response's stream, which reports each chunk's size and any failure."""

    def __init__(
        self, stream: Any, note: Callable[[int], None], broke_off: Callable[[BaseException], None]
    ) -> None:
        self._stream = stream
        self._note = note
        self._broke_off = broke_off

    def __iter__(self) -> Iterator[bytes]:
        with self._failure_reported():
            for piece in self._stream:
                self._note(len(piece))
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._failure_reported():
            async for piece in self._stream:
                self._note(len(piece))
                yield piece

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # A cancelled task or a test timeout also leaves an incomplete answer.
            self._broke_off(error)
            raise

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


_AIOHTTP: Final = "aiohttp"
_TYPE: Final = "Content-Type"


@contextmanager
def tapped(session: CassetteSession) -> Iterator[None]:
    """During the `with` block, pass all of this process's HTTP requests to the session, to play or record them."""
    with ExitStack() as stack:
        deck = _Deck(session)
        for patcher in CassettePatcherBuilder(deck).build():
            stack.enter_context(patcher)
        yield


def _whole_reads(session: CassetteSession) -> Callable[..., bytes]:
    """Return a replacement of `HTTPResponse.read` that reports truncated responses to the session."""
    real = HTTPResponse.read

    @wraps(real)
    def read(response: HTTPResponse, *size: Any) -> bytes:
        try:
            return real(response, *size)
        except BaseException as error:
            session.refuse(f"a response broke off: {reason(error)}")
            raise

    return read


class _Deck:
    """The session as a vcrpy cassette, with those parts of the cassette interface that vcrpy uses."""

    record_mode = VcrMode.NEW_EPISODES
    rewound = True
    # Otherwise vcrpy would raise its own error for a request that is not recorded, before `play_response` raises ours.
    write_protected = False
    skip_patchers = (*PACKAGES, _AIOHTTP)

    def __init__(self, session: CassetteSession) -> None:
        self._session = session
        self._path = str(session.path)
        self.custom_patches = (
            *_httpx_patches(session),
            *_aiohttp_patches(self),
            (HTTPResponse, "read", _whole_reads(session)),
        )

    def refuse(self, why: str) -> None:
        """Report to the session that an exchange is not recorded, and why."""
        self._session.refuse(why)

    def title(self, method: str, url: str) -> str:
        """Return a request's name for messages."""
        return f"{method} {plain_uri(url, self._session.matching.own)}"

    def filter_request(self, request: VcrRequest) -> VcrRequest:
        """Return the request unchanged, so that vcrpy does not ignore any request."""
        return request

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Return whether `play_response` handles the request, because it is recorded or nothing may be recorded."""
        return not self._session.may_record or self._session.can_play(request_of(request))

    def play_response(self, request: VcrRequest) -> dict[str, object]:
        """Return the recorded response in vcrpy's form."""
        response = played(self._session, request_of(request))
        if response is None:
            raise UnrecordedRequest(f"another thread played the last recording of {request}")
        return for_vcrpy(response)

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record a live exchange."""
        self._session.record(request_of(request), response_of(response))


Send = Callable[..., Any]
"""aiohttp's `ClientSession._request`, which returns a coroutine."""


def _aiohttp_patches(deck: _Deck) -> Iterator[tuple[type, str, Send]]:
    """Yield the patch for aiohttp, if it is installed: class, method name, new method."""
    try:
        package = importlib.import_module(_AIOHTTP)
    except ImportError:
        return
    session = package.ClientSession
    yield session, "_request", _aiohttp_request(package, deck, session._request)


def _aiohttp_request(package: Any, deck: _Deck, real: Send) -> Send:
    # Imported here, because this module of vcrpy imports aiohttp.
    stubs = importlib.import_module("vcr.stubs.aiohttp_stubs")

    @wraps(real)
    async def request(session: Any, method: str, url: Any, **options: Any) -> Any:
        await _make_body(package, session, options)
        read = _Read(deck, deck.title(method, str(url)), decompressed=_decompresses(session, options))
        return await stubs.vcr_request(read, read.sending(real))(session, method, url, **options)

    return request


async def _make_body(package: Any, session: Any, options: dict[str, Any]) -> None:
    """Replace the `json` and `data` options with the bytes that aiohttp will send, and their content type."""
    if options.get("json") is not None and options.get("data") is None:
        body = package.payload.JsonPayload(options.pop("json"), dumps=session.json_serialize)
    elif isinstance(options.get("data"), package.payload.Payload):
        body = options["data"]
    elif isinstance(options.get("data"), Mapping | list | tuple | package.FormData):
        form = options["data"]
        body = form() if isinstance(form, package.FormData) else package.FormData(form)()
    else:
        return
    options["data"] = await body.as_bytes()
    headers = session._prepare_headers(options.get("headers"))
    if _TYPE not in headers:
        headers[_TYPE] = body.headers.get(_TYPE, body.content_type)
    options["headers"] = headers


def _decompresses(session: Any, options: Mapping[str, Any]) -> bool:
    option = options.get("auto_decompress")
    return bool(session.auto_decompress if option is None else option)


class _Read:
    """A vcrpy cassette for one aiohttp request, whose response may be `decompressed` already."""

    write_protected = False

    def __init__(self, deck: _Deck, title: str, *, decompressed: bool) -> None:
        self._deck = deck
        self._title = title
        self._broken: BaseException | None = None
        self._decompressed = decompressed
        self.filter_request = deck.filter_request
        self.can_play_response_for = deck.can_play_response_for
        self.play_response = deck.play_response

    def sending(self, real: Send) -> Send:
        """Wrap `real` so that its responses report when they break off."""

        @wraps(real)
        async def send(*request: Any, **options: Any) -> Any:
            response = await real(*request, **options)
            response.read = self._whole(response.read)
            return response

        return send

    def _whole(self, real: Callable[[], Awaitable[bytes]]) -> Callable[[], Awaitable[bytes]]:
        async def read() -> bytes:
            try:
                return await real()
            except BaseException as error:
                self._broken = error
                self._deck.refuse(f"{self._title}: the response broke off: {reason(error)}")
                raise

        return read

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record a live exchange."""
        if self._broken is not None:
            # vcrpy would record a lost connection as an answer without a body.
            raise self._broken
        headers = response["headers"]
        if self._decompressed:
            headers = {name: value for name, value in headers.items() if name.lower() != _ENCODING}
        self._deck.append(request, {**response, "headers": headers})

    def find_requests_with_most_matches(self, request: VcrRequest) -> list[tuple[VcrRequest, ...]]:
        """Return an empty list, which makes vcrpy treat a redirect's target as a new request."""
        return []
