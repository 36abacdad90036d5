"""vcrpy between HTTP clients and the network, with a session of ours in the place of its cassette.

vcrpy knows how to take hold of `http.client`, requests, urllib3, aiohttp and others, and how to give each of them a
response that it takes for real. The httpx-like packages are taken hold of in `httpx_tap`, aiohttp in `aiohttp_tap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from http.client import HTTPException, HTTPResponse
from typing import Any

from vcr.patch import CassettePatcherBuilder
from vcr.record_mode import RecordMode as VcrMode
from vcr.request import Request as VcrRequest

from statek_sim.cassettes import aiohttp_tap, httpx_tap
from statek_sim.cassettes.session import CassetteSession
from statek_sim.cassettes.vcr_adapter import UnrecordedRequest as UnrecordedRequest
from statek_sim.cassettes.vcr_adapter import for_vcrpy, played, request_of, response_of


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
        except (HTTPException, OSError) as error:
            session.refuse(f"an answer broke off: {error}")
            raise

    return read


class _Deck:
    """What vcrpy calls a cassette, as far as it asks for one."""

    record_mode = VcrMode.NEW_EPISODES
    rewound = True
    # vcrpy would raise its own error for a request that is not recorded; ours comes out of `play_response`.
    write_protected = False
    skip_patchers = (*httpx_tap.PACKAGES, aiohttp_tap.NAME)

    def __init__(self, session: CassetteSession) -> None:
        self._session = session
        self._path = str(session.path)
        self.custom_patches = (
            *httpx_tap.patches(session),
            *aiohttp_tap.patches(self),
            (HTTPResponse, "read", _whole_reads(session)),
        )

    def refuse(self, why: str) -> None:
        """Remember what is not recorded."""
        self._session.refuse(why)

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
