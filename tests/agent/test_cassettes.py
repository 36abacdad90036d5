"""Agents on cassettes: recorded once from a provider of each format, then played without it, with the same trace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from statek_sim.cassettes.session import RecordMode
from statek_sim.errors import BadCassette
from statek_sim.providers.script import Reply, text, tool_call
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.recorded import Cassettes, recorded, replayed
from statek_sim.suite.run import run_one
from tests.recorded_samples import FORMAT_OF, Redirected, environment_for, provider_with
from tests.unit.test_cli import Shell

WEATHER = """\
suite: weather
scenarios:
  - id: tokyo
    title: The weather is looked up, after a correction.
    engine: agent
    profiles: [hardened]
    tools:
      get_weather:
        description: Return the weather of a city.
        parameters: {type: object, properties: {city: {type: string}}, required: [city]}
        result: 22 C
        takes: 3
    agents: {assistant: {prompt: You answer., model: some-model, workflow: {steps: [get_weather]}}}
    jobs: {main: {message: "What's the weather in Tokyo?"}}
    expect: {llm_calls: 3, jobs: {main: {stop: final, answer: 22 C., steps_done: [get_weather], nudges: [unfinished]}}}
"""


def scenario_in(folder: Path) -> Scenario:
    path = folder / "weather.yaml"
    path.write_text(WEATHER, encoding="utf-8")
    (scenario,) = load_or_fail([path])
    return scenario


def replies() -> list[Reply]:
    return [text("Warm, I guess."), tool_call("get_weather", city="Tokyo"), text("22 C.")]


def record(scenario: Scenario, folder: Path, provider: str) -> Cassettes:
    cassettes = Cassettes(folder, provider)
    with provider_with(*replies()) as server:
        told = recorded(
            scenario,
            "hardened",
            cassettes,
            run_one,
            mode=RecordMode.REWRITE,
            environment=environment_for(server, provider),
            live=Redirected(server),
        )
    assert (told.result.mismatches, told.recorded) == ((), 3)
    return cassettes


@pytest.mark.parametrize("provider", FORMAT_OF)
def test_an_agent_is_recorded_and_played_in_each_format(tmp_path: Path, provider: str) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", provider)
    first = replayed(scenario, "hardened", cassettes, run_one)
    again = replayed(scenario, "hardened", cassettes, run_one)
    assert (first.mismatches, first.record.error) == ((), None)
    assert first.record.digest == again.record.digest


def test_a_replay_asks_what_was_recorded_and_says_what_differs(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", "GROQ")
    agent = scenario.agents["assistant"].model_copy(update={"prompt": "You answer well."})
    other = scenario.model_copy(update={"agents": {"assistant": agent}})
    error = replayed(other, "hardened", cassettes, run_one).record.error
    assert error is not None
    assert error.type == "CassetteMiss"
    assert "You answer well." in error.message


def test_a_recording_that_an_agent_does_not_ask_for_fails_the_run(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", "GROQ")
    hurried = scenario.agents["assistant"].model_copy(
        update={"harness": scenario.agents["assistant"].harness.model_copy(update={"max_iterations": 2})}
    )
    other = scenario.model_copy(update={"agents": {"assistant": hurried}})
    error = replayed(other, "hardened", cassettes, run_one).record.error
    assert error is not None
    assert error.type == "UnplayedRecordings"


@pytest.mark.parametrize(
    ("recorded_with", "asked", "said"),
    [("GROQ", "ANTHROPIC", "'openai', but ANTHROPIC"), ("VERTEXAI", "GROQ", "'gemini', but GROQ")],
)
def test_a_recording_of_another_provider_is_refused_before_anything_runs(
    tmp_path: Path, recorded_with: str, asked: str, said: str
) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", recorded_with)
    wrong = Cassettes(tmp_path / "cassettes", asked)
    shutil.copy(cassettes.path(scenario, recorded_with), wrong.path(scenario, asked))
    with pytest.raises(BadCassette) as refused:
        replayed(scenario, "hardened", wrong, run_one)
    assert str(refused.value).startswith(f"{wrong.path(scenario, asked)}:")
    assert said in str(refused.value)


def test_an_answer_of_another_provider_is_refused_too(tmp_path: Path) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", "GROQ")
    path = cassettes.path(scenario, "GROQ")
    path.write_text(path.read_text("utf-8").replace('"choices"', '"candidates"'), encoding="utf-8")
    with pytest.raises(BadCassette, match=r"the response is in the format 'gemini', but GROQ uses 'openai'"):
        replayed(scenario, "hardened", cassettes, run_one)


def test_the_command_ends_with_2_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = scenario_in(tmp_path)
    cassettes = record(scenario, tmp_path / "cassettes", "GROQ")
    wrong = Cassettes(tmp_path / "cassettes", "ANTHROPIC")
    cassettes.path(scenario, "GROQ").rename(wrong.path(scenario, "ANTHROPIC"))
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path, capsys)
    told = shell("run", "weather.yaml", "--profile", "hardened", "--cassettes", "cassettes", "-q")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert told.err.startswith("cassettes/weather/tokyo.anthropic.yaml:")
    assert "pass the recorded provider as --provider" in told.err
