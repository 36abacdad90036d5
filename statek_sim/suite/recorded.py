"""Runs scenarios on recorded conversations: finds, records and replays their cassettes.

A cassette is `FOLDER/<suite>/<id>.<provider>.yaml`; a scenario may be recorded with several providers. A cassette
replaces the script: requests are answered from it, or sent to the provider and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from statek_sim.cassettes.bodies import NotJson, parsed
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Advice
from statek_sim.cassettes.secret_patterns import NO_OWN, OwnSecrets
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.errors import BadCassette, BadInput, ProviderBug, UnplayedRecordings
from statek_sim.providers.http_provider import (
    CACHING,
    KEY,
    URL,
    Exchanges,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    access_from,
)
from statek_sim.providers.wire.format import (
    ANTHROPIC_PROVIDERS,
    DEFAULT_URL,
    PROVIDERS,
    format_of,
    format_of_url,
)
from statek_sim.providers.wire.request import FormatName
from statek_sim.runtime.execution.model_name import model_provider, models_by_difficulty
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.semantics import LATEST
from statek_sim.suite.result import ScenarioResult

_METHOD: Final = ":generateContent"
_SHOWN: Final = 3


class CassetteExchanges:
    """Answers a run's requests from a cassette; requests without a recording go to `live`."""

    def __init__(
        self, session: CassetteSession, environment: Mapping[str, str], live: HttpTransport | None = None
    ) -> None:
        self._session = session
        self._live = live
        self.environment = environment
        """STATEK's provider variables."""
        self.transport: HttpTransport = self
        """The transport for the requests: this object."""

    def send(self, request: HttpRequest) -> HttpResponse:
        """Answer one request; raises `CassetteMiss` if it is not recorded and must not be sent to the provider."""
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
            raise ProviderBug(f"{self._session.path}: a recording session requires a live transport")
        response = self._live.send(request)
        self._session.record(
            wanted,
            Response(status=response.status, headers=tuple(response.headers.items()), body=response.body),
        )
        return response

    def check_finished(self) -> None:
        """Raise `UnplayedRecordings` if the cassette contains recordings that the run did not use."""
        left = self._session.unplayed()
        if left:
            places = ", ".join(f"{self._session.path}:{exchange.line}" for exchange in left[:_SHOWN])
            more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            unused = "1 recording was" if len(left) == 1 else f"{len(left)} recordings were"
            raise UnplayedRecordings(
                f"{unused} never used: {places}{more}; "
                "record the cassette again with `statek-sim cassette record`"
            )


_ANSWERS: Final[Mapping[str, FormatName]] = {
    "choices": "openai",
    "content": "anthropic",
    "candidates": "gemini",
}
"""Maps each format to a key that only its responses contain."""


def check_provider_of(path: Path, recordings: Iterable[Exchange], provider: str) -> None:
    """Raise `BadCassette` if a recording's URL or response shows that it is from another provider."""
    expected = format_of(provider).NAME
    for recording in recordings:
        uri = recording.request.uri.partition("?")[0]
        of_address, of_answer = format_of_url(uri).NAME, _format_of_answer(recording.response.body)
        for found, what in ((of_address, f"the request to {uri} is"), (of_answer, "the response is")):
            if found not in (None, expected):
                raise BadCassette(
                    f"{path}:{recording.line}: {what} in the format {found!r}, but {provider.upper()} uses "
                    f"{expected!r}; pass the recorded provider as --provider, or record again"
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
    """Return STATEK's variables at the time of recording, as far as they can be inferred from the recorded requests.

    Providers with the same format share an address. If requests in one format went to several addresses, its providers
    get none, and the replay's environment must define them.
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
    """Return the `<P>_API_URL` that makes STATEK send a request to `uri`."""
    return uri.removesuffix(_METHOD).rpartition("/")[0] if uri.endswith(_METHOD) else uri


def _is_cached(body: bytes) -> bool:
    """Return whether an Anthropic request marks text for prompt caching."""
    try:
        body_fields = parsed(body)
    except NotJson:
        return False
    return isinstance(body_fields, dict) and isinstance(body_fields.get("system"), list)


class Play(Protocol):
    """Runs a scenario on HTTP exchanges: `run_one` or `run_one_installed` with its other arguments bound."""

    def __call__(self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges) -> ScenarioResult:
        """Run the scenario and return its result."""


@dataclass(frozen=True, slots=True)
class Cassettes:
    """A folder of cassettes; `provider` and `model` override the scenarios' own.

    `own` contains the user's own secrets, which are not recorded and are redacted in requests before lookup.
    """

    folder: Path
    provider: str | None = None
    model: str | None = None
    own: OwnSecrets = NO_OWN

    @property
    def matching(self) -> Matching:
        """The rules for matching requests to recordings."""
        return Matching.ignoring(own=self.own)

    def path(self, scenario: Scenario, provider: str) -> Path:
        """Return the path of the cassette for a scenario and a provider."""
        return self.folder / scenario.suite / f"{scenario.id}.{provider.lower()}.yaml"

    def found(self, scenario: Scenario) -> tuple[Path, str]:
        """Return a scenario's cassette and its provider; raises `BadInput` if there is none, or more than one."""
        known = self._files(scenario)
        provider = self.provider.lower() if self.provider is not None else None
        if provider is None and len(known) == 1:
            provider = next(iter(known))
        if provider in known:
            return known[provider], provider.upper()
        if known and provider is None:
            raise BadInput(
                f"{scenario.suite}/{scenario.id} is recorded with {', '.join(sorted(known))}: choose one "
                "with --provider"
            )
        wanted = "PROVIDER" if provider is None else provider.upper()
        raise BadInput(
            f"{self.folder}: no cassette for {scenario.suite}/{scenario.id}; record it: {_command(scenario, wanted)}"
        )

    def _files(self, scenario: Scenario) -> dict[str, Path]:
        """Return a scenario's cassettes by provider, without the `.new.yaml` files of failed recordings."""
        files = sorted((self.folder / scenario.suite).glob(f"{scenario.id}.*.yaml"))
        named = ((path.name.removeprefix(f"{scenario.id}.").removesuffix(".yaml"), path) for path in files)
        return {provider: path for provider, path in named if "." not in provider}


def usual_profile(scenario: Scenario) -> Profile:
    """Return the profile under which a scenario is recorded: that of the newest release if possible."""
    return LATEST.name if LATEST.name in scenario.profiles else scenario.profiles[0]


def asked_of(scenario: Scenario, provider: str, model: str | None = None) -> Scenario:
    """Return the scenario with all its agents on one provider, and on one model if given.

    Raises `BadInput` if a model's name contains another provider.
    """
    agents = {}
    for role, agent in scenario.agents.items():
        chosen = agent.model if model is None else model
        for name in dict.fromkeys(models_by_difficulty(chosen).values()):
            found = model_provider(name)
            if found is not None and found.upper() != provider.upper():
                raise BadInput(
                    f"{scenario.path}:{scenario.line}: model {name!r} for agent {role!r} includes its provider: "
                    f"expected {provider.upper()}, or another model with --model"
                )
        metadata = {**agent.metadata, "PROVIDER": provider.upper()}
        agents[role] = agent.model_copy(update={"metadata": metadata, "model": chosen})
    return scenario.model_copy(update={"agents": agents})


def replayed(scenario: Scenario, profile: Profile, cassettes: Cassettes, play: Play) -> ScenarioResult:
    """Replay a scenario from its cassette, without a network or a key."""
    path, provider = cassettes.found(scenario)
    session = CassetteSession(path, RecordMode.NONE, cassettes.matching, advice=_advice(scenario, provider))
    recordings = session.recordings()
    check_provider_of(path, recordings, provider)
    exchanges = CassetteExchanges(session, recorded_environment(recordings))
    return play(asked_of(scenario, provider, cassettes.model), profile, exchanges=exchanges)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run: its result, the cassette, and the number of new exchanges in it."""

    result: ScenarioResult
    path: Path
    recorded: int


def recorded(
    scenario: Scenario,
    profile: Profile,
    cassettes: Cassettes,
    play: Play,
    *,
    mode: RecordMode,
    environment: Mapping[str, str],
    live: HttpTransport,
) -> Recording:
    """Run a scenario on a real provider and write its cassette.

    `environment` has the provider's URL and key in STATEK's variables. If the run itself fails, an existing cassette is
    kept, and the recording is written next to it.
    """
    provider = cassettes.provider
    if provider is None:
        raise BadInput("a recording requires a provider")
    access_from(environment, provider)
    path = cassettes.path(scenario, provider)
    with _session(path, mode, scenario, cassettes) as session:
        exchanges = CassetteExchanges(session, environment, live)
        result = play(asked_of(scenario, provider, cassettes.model), profile, exchanges=exchanges)
        saved = session.close(failed=result.record.error is not None)
    return Recording(result, saved.path or path, saved.recorded)


@contextmanager
def _session(
    path: Path, mode: RecordMode, scenario: Scenario, cassettes: Cassettes
) -> Iterator[CassetteSession]:
    """Open a session; if the block raises, the recordings so far are kept."""
    advice = _advice(scenario, cassettes.provider or "PROVIDER")
    session = CassetteSession(path, mode, cassettes.matching, advice=advice)
    try:
        yield session
    except BaseException:
        session.close(failed=True)
        raise


def _advice(scenario: Scenario, provider: str) -> Advice:
    # Nothing can be ignored here: a scenario's requests depend only on the scenario.
    command = _command(scenario, provider)
    return Advice(create=command, record=command, ignore="undo this change in the scenario: {fields}")


def _command(scenario: Scenario, provider: str) -> str:
    return f"statek-sim cassette record {scenario.path} --select {scenario.id} --provider {provider}"
