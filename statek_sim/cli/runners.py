"""Who runs a scenario: the reference runtime, a store that keeps runs, cassettes, or the installed package."""
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
        """Return what came of it."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """What is replayed instead of scripts: a folder of cassettes, and which of them."""

    folder: Path | None
    provider: str | None
    model: str | None
    secret_names: Sequence[str]
    secret_patterns: Sequence[str]

    def check(self) -> None:
        """Refuse options about recordings where there are none."""
        if self.folder is not None:
            return
        if self.provider is not None or self.model is not None:
            raise BadInput("--provider and --model: they choose among recordings; say --cassettes DIR too")
        if self.secret_names or self.secret_patterns:
            raise BadInput(
                "--secret-name and --secret-pattern: they are about recordings; say --cassettes DIR too"
            )

    def opened(self) -> Cassettes | None:
        """Return the cassettes, None when scripts are played."""
        if self.folder is None:
            return None
        from statek_sim.cassettes.secret_rules import OwnSecrets
        from statek_sim.suite.recorded import Cassettes

        own = OwnSecrets.of(self.secret_names, self.secret_patterns)
        return Cassettes(self.folder, self.provider, self.model, own)


def on_store(store: str, *, preset: str | None, seed: int | None) -> Runner:
    """Return what keeps runs in a store, and goes on with those that it has."""
    from statek_sim.suite.stored import StoredRunner

    return StoredRunner(address=store, preset=preset, seed=seed)


def own_runner(*, preset: str | None, seed: int | None) -> Runner:
    """Return the reference runtime."""
    from statek_sim.suite.run import run_one

    return partial(run_one, preset=preset, seed=seed)


def replaying(
    cassettes: Cassettes, pairs: Sequence[tuple[Scenario, Profile]], run: Runner, *, every_profile: bool
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Return how to run a scenario on its cassette, and which of `pairs` that is; all must be recorded."""
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
    """Start the installed package; return how to run a scenario on it, and which of `pairs` hold for it."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.installed import run_one_installed

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    chosen = tuple((scenario, profile) for scenario, profile in pairs if profile == own)
    if not chosen:
        raise BadInput(
            f"no scenario to run: statek {peer.version} follows profile {own}, "
            "and no scenario that was asked for holds for it"
        )
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), chosen
