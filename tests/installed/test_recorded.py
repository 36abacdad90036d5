"""Cassettes work on both backends: recorded from the real STATEK, replayed on the reference runtime, and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.cassettes.document import read
from statek_sim.cassettes.session import RecordMode
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.installed import run_one_installed
from statek_sim.suite.recorded import Cassettes, Play, recorded, replayed
from statek_sim.suite.run import run_one
from tests.recorded_samples import (
    FORMAT_OF,
    SCENARIO,
    Redirected,
    conversation,
    environment_for,
    provider_with,
    scenario_in,
)

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = sorted(ROOT.glob(".venv-statek-*/bin/python"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHONS, reason="no real STATEK here; `make conformance` installs it"),
]

providers = pytest.mark.parametrize("provider", FORMAT_OF)


@pytest.fixture(params=PYTHONS, ids=lambda path: path.parent.parent.name, scope="module")
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with Peer(str(request.param)) as started:
        yield started


def record(scenario: Scenario, profile: Profile, folder: Path, provider: str, play: Play) -> None:
    with provider_with(*conversation()) as server:
        recording = recorded(
            scenario,
            profile,
            Cassettes(folder, provider),
            play,
            mode=RecordMode.REWRITE,
            environment=environment_for(server, provider),
            live=Redirected(server),
        )
    assert (recording.result.mismatches, recording.recorded) == ((), 3)


@providers
def test_recorded_from_the_installed_statek_replayed_on_the_reference(
    peer: Peer, tmp_path: Path, provider: str
) -> None:
    scenario, profile = scenario_in(tmp_path), profile_of_peer(peer)
    record(scenario, profile, tmp_path, provider, partial(run_one_installed, peer))

    result = replayed(scenario, profile, Cassettes(tmp_path), run_one)

    assert (result.mismatches, result.record.backend) == ((), "reference")


@providers
def test_recorded_on_the_reference_replayed_on_the_installed_statek(
    peer: Peer, tmp_path: Path, provider: str
) -> None:
    scenario, profile = scenario_in(tmp_path), profile_of_peer(peer)
    record(scenario, profile, tmp_path, provider, run_one)

    result = replayed(scenario, profile, Cassettes(tmp_path), partial(run_one_installed, peer))

    assert (result.mismatches, result.record.backend) == ((), "installed")


def test_both_backends_record_the_same_requests(peer: Peer, tmp_path: Path) -> None:
    scenario, profile = scenario_in(tmp_path), profile_of_peer(peer)
    record(scenario, profile, tmp_path / "real", "VERTEXAI", partial(run_one_installed, peer))
    record(scenario, profile, tmp_path / "reference", "VERTEXAI", run_one)

    assert _bodies(tmp_path / "real") == _bodies(tmp_path / "reference")


def _bodies(folder: Path) -> list[bytes]:
    path, _ = Cassettes(folder).found(scenario_in(folder))
    return [exchange.request.body for exchange in read(path)]


def test_a_miss_on_the_installed_statek_ends_the_run_with_what_changed(peer: Peer, tmp_path: Path) -> None:
    profile = profile_of_peer(peer)
    record(scenario_in(tmp_path), profile, tmp_path, "GROQ", run_one)
    changed = scenario_in(tmp_path, SCENARIO.replace("keep the books", "guard the books"))

    error = replayed(changed, profile, Cassettes(tmp_path), partial(run_one_installed, peer)).record.error

    assert error is not None
    assert error.type == "CassetteMiss"
    assert "guard" in error.message


def test_a_provider_that_is_gone_is_asked_again_and_ends_the_job_on_both(peer: Peer, tmp_path: Path) -> None:
    scenario, profile = scenario_in(tmp_path), profile_of_peer(peer)
    with provider_with() as server:
        environment, live = environment_for(server, "GROQ"), Redirected(server)
    plays: tuple[Play, ...] = (run_one, partial(run_one_installed, peer))
    for play in plays:
        recording = recorded(
            scenario,
            profile,
            Cassettes(tmp_path, "GROQ"),
            play,
            mode=RecordMode.REWRITE,
            environment=environment,
            live=live,
        )
        job = recording.result.record.jobs["main"]
        assert (job.llm_calls, recording.recorded) == (3, 0)
        assert job.error is not None
        assert "Connection refused" in job.error
