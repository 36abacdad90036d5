"""The ways to run a scenario: reference runtime, store, cassettes, or the installed package."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.providers.http_provider import Exchanges
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.recorded import Cassettes
    from statek_sim.suite.result import ScenarioResult


class Runner(Protocol):
    """Runs one scenario under one profile, on its script or on HTTP exchanges."""

    def __call__(
        self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None
    ) -> ScenarioResult:
        """Return the result."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """The cassettes to replay instead of scripts."""

    folder: Path | None
    provider: str | None
    model: str | None
    secret_names: Sequence[str]
    secret_patterns: Sequence[str]

    def check(self) -> None:
        """Refuse options about cassettes without `--cassettes`."""
        if self.folder is not None:
            return
        if self.provider is not None or self.model is not None:
            raise BadInput("--provider and --model require --cassettes DIR")
        if self.secret_names or self.secret_patterns:
            raise BadInput("--secret-name and --secret-pattern require --cassettes DIR")

    def opened(self) -> Cassettes | None:
        """Return the cassettes; None to play scripts."""
        if self.folder is None:
            return None
        from statek_sim.cassettes.secret_rules import OwnSecrets
        from statek_sim.suite.recorded import Cassettes

        own = OwnSecrets.of(self.secret_names, self.secret_patterns)
        return Cassettes(self.folder, self.provider, self.model, own)


def on_store(store: str, *, preset: str | None, seed: int | None) -> Runner:
    """Return a runner that keeps runs in a store and resumes the runs in it."""
    from statek_sim.suite.stored import StoredRunner

    return StoredRunner(address=store, preset=preset, seed=seed)


def own_runner(*, preset: str | None, seed: int | None) -> Runner:
    """Return the reference runtime."""
    from statek_sim.suite.run import run_one

    return partial(run_one, preset=preset, seed=seed)


def replaying(
    cassettes: Cassettes, pairs: Sequence[tuple[Scenario, Profile]], run: Runner, *, every_profile: bool
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Return a runner on cassettes, and the `pairs` to run; all must be recorded."""
    from statek_sim.suite.recorded import replayed, usual_profile

    recorded = tuple(
        (scenario, profile)
        for scenario, profile in pairs
        if every_profile or profile == usual_profile(scenario)
    )
    for scenario, _ in recorded:
        cassettes.found(scenario)

    def replay(scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None) -> ScenarioResult:
        assert exchanges is None, "the cassette has them"
        return replayed(scenario, profile, cassettes, run)

    return replay, recorded


def installed(
    stack: ExitStack,
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Start the installed package; return a runner on it, and the `pairs` of its profile."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.installed import run_one_installed

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    chosen = tuple((scenario, profile) for scenario, profile in pairs if profile == own)
    if not chosen:
        raise BadInput(
            f"no scenario to run: statek {peer.version} follows profile {own}, "
            "and none of the chosen scenarios has it"
        )
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), chosen
