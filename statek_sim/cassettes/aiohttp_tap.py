"""aiohttp: its requests with the bytes that are really sent, and its responses as they were read.

vcrpy sees a session's arguments before aiohttp makes a body of them, and a response after aiohttp has decompressed it.
So a body is made here, and a response loses the header that says how it was compressed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Final, Protocol

from vcr.request import Request as VcrRequest

from statek_sim.cassettes.redaction import plain_uri

NAME: Final = "aiohttp"

_TYPE: Final = "Content-Type"
_ENCODING: Final = "content-encoding"

Send = Callable[..., Any]
"""A session's method: takes the session, the method, the address and more by name; returns a coroutine."""


class Deck(Protocol):
    """What vcrpy calls a cassette, as far as aiohttp's requests need one."""

    write_protected: bool

    def filter_request(self, request: VcrRequest) -> VcrRequest:
        """Return the request."""

    def can_play_response_for(self, request: VcrRequest) -> bool:
        """Whether the request is not to go live."""

    def play_response(self, request: VcrRequest) -> dict[str, object]:
        """Return the recorded response."""

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live."""

    def refuse(self, why: str) -> None:
        """Remember what is not recorded."""


def patches(deck: Deck) -> Iterator[tuple[type, str, Send]]:
    """Yield what is to be replaced in aiohttp, where it is installed, for as long as the deck is open."""
    try:
        package = importlib.import_module(NAME)
    except ImportError:
        return
    session = package.ClientSession
    yield session, "_request", _request(package, deck, session._request)


def _request(package: Any, deck: Deck, real: Send) -> Send:
    # It imports aiohttp, which may not be there when this module is loaded.
    stubs = importlib.import_module("vcr.stubs.aiohttp_stubs")

    @wraps(real)
    async def request(session: Any, method: str, url: Any, **options: Any) -> Any:
        await _make_body(package, session, options)
        call = stubs.vcr_request(_Read(deck, decompressed=_decompresses(session, options)), real)
        try:
            return await call(session, method, url, **options)
        except package.ClientPayloadError as error:
            deck.refuse(f"{method} {plain_uri(str(url))}: its answer broke off: {error}")
            raise

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

    def __init__(self, deck: Deck, *, decompressed: bool) -> None:
        self._deck = deck
        self._decompressed = decompressed
        self.filter_request = deck.filter_request
        self.can_play_response_for = deck.can_play_response_for
        self.play_response = deck.play_response

    def append(self, request: VcrRequest, response: Mapping[str, Any]) -> None:
        """Record what went live."""
        headers = response["headers"]
        if self._decompressed:
            headers = {name: value for name, value in headers.items() if name.lower() != _ENCODING}
        self._deck.append(request, {**response, "headers": headers})

    def find_requests_with_most_matches(self, request: VcrRequest) -> list[tuple[VcrRequest, ...]]:
        """Return nothing: where a redirect leads is looked up as it is."""
        return []
