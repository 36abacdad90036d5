"""Scenarios on recorded conversations: where the cassettes are, recording one, replaying one.

A cassette is `FOLDER/<suite>/<id>.<provider>.yaml`: a scenario may be recorded with several providers, and its file
says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from statek_sim.backends.recorded import CassetteExchanges, check_provider_of, recorded_environment
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.secret_rules import NO_OWN, OwnSecrets
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tape import Advice
from statek_sim.errors import BadInput
from statek_sim.providers.http_provider import Exchanges, HttpTransport, access_from
from statek_sim.runtime.execution.model_name import model_provider, models_by_difficulty
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.semantics import LATEST
from statek_sim.suite.result import ScenarioResult


class Play(Protocol):
    """Runs a scenario on HTTP exchanges: `run_one` or `run_one_installed`, with their other arguments given."""

    def __call__(self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges) -> ScenarioResult:
        """Return what came of it."""


@dataclass(frozen=True, slots=True)
class Cassettes:
    """A folder of cassettes, and what replaces the scenarios' own choice: a provider, a model.

    `own` are secrets of the team's own: they are not recorded, and replaced in requests before those are looked up.
    """

    folder: Path
    provider: str | None = None
    model: str | None = None
    own: OwnSecrets = NO_OWN

    @property
    def matching(self) -> Matching:
        """Which requests count as the same."""
        return Matching.ignoring(own=self.own)

    def path(self, scenario: Scenario, provider: str) -> Path:
        """Return the file of a scenario's conversation with a provider."""
        return self.folder / scenario.suite / f"{scenario.id}.{provider.lower()}.yaml"

    def found(self, scenario: Scenario) -> tuple[Path, str]:
        """Return the recorded file of a scenario and its provider; `BadInput` for none, and for several."""
        known = self._files(scenario)
        provider = self.provider.lower() if self.provider is not None else None
        if provider is None and len(known) == 1:
            provider = next(iter(known))
        if provider in known:
            return known[provider], provider.upper()
        if known and provider is None:
            raise BadInput(
                f"{scenario.suite}/{scenario.id} is recorded with {', '.join(sorted(known))}: "
                "say which with --provider"
            )
        wanted = "PROVIDER" if provider is None else provider.upper()
        raise BadInput(
            f"{self.folder}: no cassette of {scenario.suite}/{scenario.id}; record it: {_command(scenario, wanted)}"
        )

    def _files(self, scenario: Scenario) -> dict[str, Path]:
        """Return the recorded files by provider; `ID.PROVIDER.new.yaml` is what a failed recording left."""
        files = sorted((self.folder / scenario.suite).glob(f"{scenario.id}.*.yaml"))
        named = ((path.name.removeprefix(f"{scenario.id}.").removesuffix(".yaml"), path) for path in files)
        return {provider: path for provider, path in named if "." not in provider}


def usual_profile(scenario: Scenario) -> Profile:
    """Return the profile that a scenario is recorded under unless another is named: the newest release's."""
    return LATEST.name if LATEST.name in scenario.profiles else scenario.profiles[0]


def asked_of(scenario: Scenario, provider: str, model: str | None = None) -> Scenario:
    """Return the scenario with all its agents on one provider, and on one model if that is given.

    `BadInput` for a model name that says another provider itself.
    """
    agents = {}
    for role, agent in scenario.agents.items():
        chosen = agent.model if model is None else model
        for name in dict.fromkeys(models_by_difficulty(chosen).values()):
            found = model_provider(name)
            if found is not None and found.upper() != provider.upper():
                raise BadInput(
                    f"{scenario.path}:{scenario.line}: model {name!r} of agent {role!r} names its provider: "
                    f"expected {provider.upper()}, or another model with --model"
                )
        metadata = {**agent.metadata, "PROVIDER": provider.upper()}
        agents[role] = agent.model_copy(update={"metadata": metadata, "model": chosen})
    return scenario.model_copy(update={"agents": agents})


def replayed(scenario: Scenario, profile: Profile, cassettes: Cassettes, play: Play) -> ScenarioResult:
    """Run a scenario on its cassette, without a network and a key."""
    path, provider = cassettes.found(scenario)
    session = CassetteSession(path, RecordMode.NONE, cassettes.matching, advice=_advice(scenario, provider))
    recordings = session.recordings()
    check_provider_of(path, recordings, provider)
    exchanges = CassetteExchanges(session, recorded_environment(recordings))
    return play(asked_of(scenario, provider, cassettes.model), profile, exchanges=exchanges)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that was recorded: its result, the file, and how many exchanges are new in it."""

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

    `environment` has the provider's address and key, as for STATEK. When the run itself fails, a cassette that is there
    stays, and what was recorded is put beside it.
    """
    provider = cassettes.provider
    if provider is None:
        raise BadInput("a recording needs a provider")
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
    """Open a session; what it recorded before a crash is not lost."""
    advice = _advice(scenario, cassettes.provider or "PROVIDER")
    session = CassetteSession(path, mode, cassettes.matching, advice=advice)
    try:
        yield session
    except BaseException:
        session.close(failed=True)
        raise


def _advice(scenario: Scenario, provider: str) -> Advice:
    # Nothing can be ignored here: what a scenario sends depends on the scenario alone.
    return Advice(record=_command(scenario, provider), ignore="change the scenario back ({field})")


def _command(scenario: Scenario, provider: str) -> str:
    return f"statek-sim cassette record {scenario.path} --select {scenario.id} --provider {provider}"
