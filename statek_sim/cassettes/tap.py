"""vcrpy between HTTP clients and the network, with a session of ours in the place of its cassette.

vcrpy knows how to take hold of `http.client`, requests, urllib3, aiohttp and others, and how to give each of them a
response that it takes for real. The httpx-like packages are taken hold of in `httpx_tap`.

Of aiohttp, vcrpy sees a session's arguments before aiohttp makes a body of them, and a response after aiohttp has
decompressed it. So a body is made here, and a response loses the header that says how it was compressed.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from http.client import HTTPResponse
from typing import Any, Final

from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrMode
from vcr.request import Request as VcrRequest

from statek_sim.cassettes import httpx_tap
from statek_sim.cassettes.redaction import plain_uri
from statek_sim.cassettes.session import CassetteSession
from statek_sim.cassettes.vcr_adapter import UnrecordedRequest as UnrecordedRequest
from statek_sim.cassettes.vcr_adapter import for_vcrpy, played, reason, request_of, response_of

_AIOHTTP: Final = "aiohttp"
_TYPE: Final = "Content-Type"
_ENCODING: Final = "content-encoding"


@contextmanager
def tapped(session: CassetteSession) -> Iterator[None]:
    """Answer all HTTP requests of this process from the session, and record what goes live, inside the block."""
    with ExitStack() as stack:
        deck = _Deck(session)
        for patcher in CassettePatcherBuilder(deck).build():
            stack.enter_context(patcher)
        yield


def _whole_reads(session: CassetteSession) -> Callable[..., bytes]:
    """Return what reads a live answer for vcrpy, and tells of one that breaks off."""
    real = HTTPResponse.read

    @wraps(real)
    def read(response: HTTPResponse, *size: Any) -> bytes:
        try:
            return real(response, *size)
        except BaseException as error:
            session.refuse(f"an answer broke off: {reason(error)}")
            raise

    return read


class _Deck:
    """What vcrpy calls a cassette, as far as it asks for one."""

    record_mode = VcrMode.NEW_EPISODES
    rewound = True
    # vcrpy would raise its own error for a request that is not recorded; ours comes out of `play_response`.
    write_protected = False
    skip_patchers = (*httpx_tap.PACKAGES, _AIOHTTP)

    def __init__(self, session: CassetteSession) -> None:
        self._session = session
        self._path = str(session.path)
        self.custom_patches = (
            *httpx_tap.patches(session),
            *_aiohttp_patches(self),
            (HTTPResponse, "read", _whole_reads(session)),
        )

    def refuse(self, why: str) -> None:
        """Remember what is not recorded."""
        self._session.refuse(why)

    def title(self, method: str, url: str) -> str:
        """Return what a request is called where it is not recorded."""
        return f"{method} {plain_uri(url, self._session.matching.own)}"

    def filter_request(self, request: VcrRequest) -> VcrRequest:
        """Return the request: every one counts."""
        return request

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Whether the request is not to go live: it is recorded, or nothing may be recorded."""
        return not self._session.may_record or self._session.can_play(request_of(request))

    def play_response(self, request: VcrRequest) -> dict[str, object]:
        """Return the recorded response as vcrpy has it."""
        response = played(self._session, request_of(request))
        if response is None:
            raise UnrecordedRequest(f"another thread played the last recording of {request}")
        return for_vcrpy(response)

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live."""
        self._session.record(request_of(request), response_of(response))


Send = Callable[..., Any]
"""A session's method: takes the session, the method, the address and more by name; returns a coroutine."""


def _aiohttp_patches(deck: _Deck) -> Iterator[tuple[type, str, Send]]:
    """Yield what is to be replaced in aiohttp, where it is installed, for as long as the deck is open."""
    try:
        package = importlib.import_module(_AIOHTTP)
    except ImportError:
        return
    session = package.ClientSession
    yield session, "_request", _aiohttp_request(package, deck, session._request)


def _aiohttp_request(package: Any, deck: _Deck, real: Send) -> Send:
    # It imports aiohttp, which may not be there when this module is loaded.
    stubs = importlib.import_module("vcr.stubs.aiohttp_stubs")

    @wraps(real)
    async def request(session: Any, method: str, url: Any, **options: Any) -> Any:
        await _make_body(package, session, options)
        read = _Read(deck, deck.title(method, str(url)), decompressed=_decompresses(session, options))
        return await stubs.vcr_request(read, read.sending(real))(session, method, url, **options)

    return request


async def _make_body(package: Any, session: Any, options: dict[str, Any]) -> None:
    """Put the bytes that will be sent in the place of `json` and of what forms are made of."""
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
    """A deck for responses that aiohttp has read, and decompressed if it does so."""

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
        """Return what sends a request, and tells of an answer that breaks off while it is read."""

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
                self._deck.refuse(f"{self._title}: its answer broke off: {reason(error)}")
                raise

        return read

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live."""
        if self._broken is not None:
            # vcrpy takes a connection that is lost for an answer without a body.
            raise self._broken
        headers = response["headers"]
        if self._decompressed:
            headers = {name: value for name, value in headers.items() if name.lower() != _ENCODING}
        self._deck.append(request, {**response, "headers": headers})

    def find_requests_with_most_matches(self, request: VcrRequest) -> list[tuple[VcrRequest, ...]]:
        """Return nothing: where a redirect leads is looked up as it is."""
        return []
