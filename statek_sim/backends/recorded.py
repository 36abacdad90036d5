"""A cassette in the place of a scenario's script: requests are answered from it, or go live and are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from statek_sim.cassettes.bodies import NotJson, parsed
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.session import CassetteSession
from statek_sim.errors import BadCassette, ProviderBug, UnplayedRecordings
from statek_sim.providers.http_provider import CACHING, KEY, URL, HttpRequest, HttpResponse, HttpTransport
from statek_sim.providers.wire.format import (
    ANTHROPIC_PROVIDERS,
    DEFAULT_URL,
    PROVIDERS,
    format_of,
    format_of_url,
)
from statek_sim.providers.wire.request import FormatName

_METHOD: Final = ":generateContent"
_SHOWN: Final = 3


class CassetteExchanges:
    """Answers a run's requests from a cassette's session; what may be recorded goes to `live`."""

    def __init__(
        self, session: CassetteSession, environment: Mapping[str, str], live: HttpTransport | None = None
    ) -> None:
        self._session = session
        self._environment = environment
        self._live = live

    @property
    def transport(self) -> HttpTransport:
        """What carries the requests."""
        return self

    @property
    def environment(self) -> Mapping[str, str]:
        """STATEK's variables of the providers."""
        return self._environment

    def send(self, request: HttpRequest) -> HttpResponse:
        """Answer one request; `CassetteMiss` when it is not recorded and must not go live."""
        wanted = Request(
            method=request.method,
            uri=request.url,
            headers=tuple(request.headers.items()),
            body=request.body,
        )
        recorded = self._session.play(wanted)
        if recorded is not None:
            return HttpResponse(status=recorded.status, headers=dict(recorded.headers), body=recorded.body)
        if self._live is None:
            raise ProviderBug(f"{self._session.path}: a session that records needs a live transport")
        response = self._live.send(request)
        self._session.record(
            wanted,
            Response(status=response.status, headers=tuple(response.headers.items()), body=response.body),
        )
        return response

    def check_finished(self) -> None:
        """Raise `UnplayedRecordings` when the cassette has recordings that the run did not ask for."""
        left = self._session.unplayed()
        if left:
            places = ", ".join(f"{self._session.path}:{exchange.line}" for exchange in left[:_SHOWN])
            more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            raise UnplayedRecordings(
                f"{len(left)} recordings of the cassette were never used: {places}{more}; "
                "record it again with statek-sim cassette record"
            )


_ANSWERS: Final[Mapping[str, FormatName]] = {
    "choices": "openai",
    "content": "anthropic",
    "candidates": "gemini",
}
"""The member of a provider's answer that the others' do not have."""


def check_provider_of(path: Path, recordings: Iterable[Exchange], provider: str) -> None:
    """Raise `BadCassette` for a recording that cannot be this provider's: by its address, or by what it answered."""
    expected = format_of(provider).NAME
    for recording in recordings:
        uri = recording.request.uri.partition("?")[0]
        of_address, of_answer = format_of_url(uri).NAME, _format_of_answer(recording.response.body)
        for found, what in ((of_address, f"{uri} is asked"), (of_answer, "the answer is")):
            if found not in (None, expected):
                raise BadCassette(
                    f"{path}:{recording.line}: {what} in the format {found!r}, and {provider.upper()} speaks "
                    f"{expected!r}; expected a recording of that provider: say --provider with the one that was "
                    "recorded, or record it again"
                )


def _format_of_answer(body: bytes) -> FormatName | None:
    try:
        body_fields = parsed(body)
    except NotJson:
        return None
    found = (
        {_ANSWERS[key] for key in body_fields if key in _ANSWERS} if isinstance(body_fields, dict) else set()
    )
    return found.pop() if len(found) == 1 else None


def recorded_environment(recordings: Iterable[Exchange]) -> dict[str, str]:
    """Return STATEK's variables as they were when the cassette was recorded, as far as its requests tell.

    Providers that share a format share an address: the only one that was recorded. When there are several, no
    provider of that format has one, and the environment of the replay has to say which is whose.
    """
    addresses: dict[FormatName, set[str]] = {"openai": set(), "anthropic": {DEFAULT_URL}, "gemini": set()}
    caching = False
    for recording in recordings:
        uri = recording.request.uri.partition("?")[0]
        name = format_of_url(uri).NAME
        if name != "anthropic":
            addresses[name].add(_api_url(uri))
        else:
            caching = caching or _is_cached(recording.request.body)
    found = {
        provider: next(iter(addresses[format_of(provider).NAME]))
        for provider in PROVIDERS
        if len(addresses[format_of(provider).NAME]) == 1
    }
    cached = {provider + CACHING: "true" for provider in ANTHROPIC_PROVIDERS if caching}
    return {
        **{provider + URL: address for provider, address in found.items()},
        **{provider + KEY: "recorded" for provider in found},
        **cached,
    }


def _api_url(uri: str) -> str:
    """Return the `<P>_API_URL` that made a request go to `uri`."""
    return uri.removesuffix(_METHOD).rpartition("/")[0] if uri.endswith(_METHOD) else uri


def _is_cached(body: bytes) -> bool:
    """Tell whether an Anthropic request marks what is to be cached."""
    try:
        body_fields = parsed(body)
    except NotJson:
        return False
    return isinstance(body_fields, dict) and isinstance(body_fields.get("system"), list)
