"""Scenarios are recorded from a provider on this machine, and replayed without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.cassettes.session import RecordMode
from statek_sim.errors import BadInput, BadSetting
from statek_sim.providers.http_provider import Exchanges
from statek_sim.providers.script import Reply, fault
from statek_sim.reporting.model import build_report
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.recorded import Cassettes, Play, Recording, asked_of, recorded, replayed, usual_profile
from statek_sim.suite.result import ScenarioResult
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

providers = pytest.mark.parametrize("provider", FORMAT_OF)


def record(
    scenario: Scenario, cassettes: Cassettes, *replies: Reply, play: Play = run_one, mode: str = "rewrite"
) -> Recording:
    assert cassettes.provider is not None
    with provider_with(*(replies or conversation())) as server:
        return recorded(
            scenario,
            "1.4",
            cassettes,
            play,
            mode=RecordMode(mode),
            environment=environment_for(server, cassettes.provider),
            live=Redirected(server),
        )


def replay(
    scenario: Scenario, folder: Path, provider: str | None = None, model: str | None = None
) -> ScenarioResult:
    return replayed(scenario, "1.4", Cassettes(folder, provider, model), run_one)


@providers
def test_what_is_recorded_replays_the_same_run_without_the_provider(tmp_path: Path, provider: str) -> None:
    scenario = scenario_in(tmp_path)

    recording = record(scenario, Cassettes(tmp_path, provider))
    result = replay(scenario, tmp_path)

    assert recording.path == tmp_path / "books" / f"invoice.{provider.lower()}.yaml"
    assert (recording.recorded, recording.result.mismatches, result.mismatches) == (3, (), ())
    assert result.record.digest == recording.result.record.digest


@providers
def test_reported_usage_of_a_recording_is_the_third_column(tmp_path: Path, provider: str) -> None:
    scenario = scenario_in(tmp_path)
    record(scenario, Cassettes(tmp_path, provider))

    report = build_report([replay(scenario, tmp_path)], preset=None, seed=None)

    assert [row.usage.reported_tokens for row in report.rows] == [66]


@providers
def test_the_key_is_not_in_the_cassette(tmp_path: Path, provider: str) -> None:
    recording = record(scenario_in(tmp_path), Cassettes(tmp_path, provider))

    assert "0123456789abcdef" not in recording.path.read_text(encoding="utf-8")


def test_a_changed_prompt_is_a_miss_that_shows_what_changed_and_how_to_record_it(tmp_path: Path) -> None:
    record(scenario_in(tmp_path), Cassettes(tmp_path, "GROQ"))
    changed = scenario_in(tmp_path, SCENARIO.replace("keep the books", "guard the books"))

    result = replay(changed, tmp_path)

    assert result.record.error is not None
    assert result.record.error.type == "CassetteMiss"
    assert "guard" in result.record.error.message
    assert (
        f"statek-sim cassette record {changed.path} --select invoice --provider GROQ"
        in result.record.error.message
    )


def test_recordings_that_nobody_asks_for_fail_the_run(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    record(scenario, Cassettes(tmp_path, "GROQ"))
    shorter = scenario_in(tmp_path, SCENARIO + "    limits: {max_turns: 1}\n")

    result = replay(shorter, tmp_path)

    assert result.record.error is not None
    assert result.record.error.type == "UnplayedRecordings"
    assert result.record.error.message.startswith("1 recording")


def test_a_refusal_is_recorded_and_replayed_like_any_answer(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    record(scenario, Cassettes(tmp_path, "GROQ"), fault(400))

    error = replay(scenario, tmp_path).record.jobs["main"].error

    assert error is not None
    assert error.startswith("Client error '400 Bad Request' for url 'http://127.0.0.1:")


def test_a_failed_recording_leaves_the_old_cassette_alone_and_puts_its_own_aside(tmp_path: Path) -> None:
    scenario, cassettes = scenario_in(tmp_path), Cassettes(tmp_path, "GROQ")
    path = record(scenario, cassettes).path
    before = path.read_bytes()

    def interrupted(scenario: Scenario, profile: Profile, *, exchanges: Exchanges) -> ScenarioResult:
        run_one(scenario, profile, exchanges=exchanges)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(scenario, cassettes, play=interrupted)

    assert path.read_bytes() == before
    assert path.with_name("invoice.groq.new.yaml").exists()
    assert replay(scenario, tmp_path).mismatches == ()


def test_a_recording_needs_the_providers_address_and_key(tmp_path: Path) -> None:
    message = r"^cannot send a request to GROQ: set GROQ_API_URL and GROQ_API_KEY, just as you would for STATEK itself "
    with provider_with() as server, pytest.raises(BadSetting, match=message):
        recorded(
            scenario_in(tmp_path),
            "1.4",
            Cassettes(tmp_path, "GROQ"),
            run_one,
            mode=RecordMode.REWRITE,
            environment={},
            live=Redirected(server),
        )


def test_a_scenario_that_is_not_recorded_is_told_how_to_be(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    message = (
        rf"^{tmp_path}: no cassette for books/invoice; record it: "
        rf"statek-sim cassette record {scenario.path} --select invoice --provider PROVIDER$"
    )
    with pytest.raises(BadInput, match=message):
        replay(scenario, tmp_path)


def test_of_several_providers_one_must_be_named(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    for provider in ("GROQ", "VERTEXAI"):
        record(scenario, Cassettes(tmp_path, provider))

    with pytest.raises(
        BadInput, match=r"^books/invoice is recorded with groq, vertexai: choose one with --provider$"
    ):
        replay(scenario, tmp_path)
    assert replay(scenario, tmp_path, provider="vertexai").mismatches == ()


def test_another_model_is_asked_and_must_be_named_for_the_replay_too(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    record(scenario, Cassettes(tmp_path, "GROQ", "other-model"))

    assert replay(scenario, tmp_path, model="other-model").mismatches == ()
    assert replay(scenario, tmp_path).record.error is not None


def test_a_model_that_names_another_provider_is_refused(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path, SCENARIO.replace("a-model", "openai/gpt/gpt-4o"))
    message = (
        r"books\.yaml:3: model 'openai/gpt/gpt-4o' for agent 'clerk' includes its provider: "
        r"expected GROQ, or another model with --model$"
    )
    with pytest.raises(BadInput, match=message):
        asked_of(scenario, "groq")


def test_a_scenario_is_recorded_under_the_newest_release_that_it_holds_for(tmp_path: Path) -> None:
    assert usual_profile(scenario_in(tmp_path)) == "1.4"
    old = SCENARIO.replace("    agents:", "    profiles: ['1.2']\n    agents:")
    assert usual_profile(scenario_in(tmp_path, old)) == "1.2"
