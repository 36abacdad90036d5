"""Which scenarios run, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.harness.preset import located_preset
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.result import Mismatch
from statek_sim.suite.run import (
    builtin_suites,
    chosen,
    nothing_chosen,
    run_one,
    run_suite,
)
from tests.says import line_with, says
from tests.unit.suite_samples import load

TEXT = """\
  - {id: turns, title: One, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, tags: [slow, x]}
  - {id: turns-one-over, title: Two, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, profiles: ["1.4", docs]}
  - {id: other, title: Three, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, tags: [y], profiles: ["1.2"]}
"""


@pytest.fixture
def scenarios(tmp_path: Path) -> tuple[Scenario, ...]:
    return load(tmp_path, TEXT)


def ids(pairs: tuple[tuple[Scenario, str], ...]) -> list[str]:
    return [f"{scenario.id}[{profile}]" for scenario, profile in pairs]


def test_every_scenario_runs_under_each_of_its_profiles_in_one_order(scenarios: tuple[Scenario, ...]) -> None:
    assert ids(chosen(scenarios)) == [
        "turns[docs]",
        "turns[1.2]",
        "turns[1.4]",
        "turns-one-over[docs]",
        "turns-one-over[1.4]",
        "other[1.2]",
    ]


def test_an_exact_id_selects_only_that_scenario(scenarios: tuple[Scenario, ...]) -> None:
    assert ids(chosen(scenarios, select="turns", profiles=["docs"])) == ["turns[docs]"]
    assert ids(chosen(scenarios, select="samples/turns", profiles=["docs"])) == ["turns[docs]"]


def test_other_text_selects_by_part_of_suite_id_and_profile(scenarios: tuple[Scenario, ...]) -> None:
    assert ids(chosen(scenarios, select="TURN", profiles=["docs"])) == ["turns[docs]", "turns-one-over[docs]"]
    assert ids(chosen(scenarios, select="samples/o")) == ["other[1.2]"]
    assert ids(chosen(scenarios, select="[1.2]")) == ["turns[1.2]", "other[1.2]"]
    assert chosen(scenarios, select="nothing") == ()


def test_a_tag_selects_scenarios_that_have_one_of_them(scenarios: tuple[Scenario, ...]) -> None:
    assert ids(chosen(scenarios, tags=["x", "y"], profiles=["1.2"])) == ["turns[1.2]", "other[1.2]"]


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("1.2.7", ("STATEK 1.2.7", "profile '1.2'")),
        ("1.3", ()),
        ("doc", ("agent engine", "hardened", "'docs'?")),
    ],
)
def test_an_unknown_profile_is_bad_input(
    scenarios: tuple[Scenario, ...], name: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput, match=line_with(f"profile '{name}'", "docs, 1.2.5, 1.2, 1.4", *facts)):
        chosen(scenarios, profiles=[name])


@pytest.mark.parametrize(
    ("asked", "hints"),
    [
        ({"select": "turns-one-ovr"}, ["'turns-one-over'?"]),
        ({"select": "samples/othr"}, ["'samples/other'?"]),
        ({"select": "zzz"}, []),
        ({"select": "turns"}, []),
        ({"tags": ["slwo"]}, ["'slow'?"]),
        ({"tags": ["slow"]}, []),
        ({"tags": ["zzz"]}, ["tags: slow, x, y"]),
        ({"profiles": ["1.2.5"]}, ['`profiles: ["1.2.5"]`', "--profile docs"]),
    ],
)
def test_a_wish_that_nothing_fits_gets_a_suggestion(
    scenarios: tuple[Scenario, ...], asked: dict[str, Any], hints: list[str]
) -> None:
    problem, _, suggestion = nothing_chosen(scenarios, **asked).partition(". ")
    assert says(problem, "scenario", "none of 3")
    assert says(suggestion, *hints) if hints else suggestion == ""


def test_a_suite_yields_results_in_that_order(scenarios: tuple[Scenario, ...]) -> None:
    found = list(run_suite(scenarios, select="turns-one-over"))
    assert [result.id for result in found] == ["samples/turns-one-over[docs]", "samples/turns-one-over[1.4]"]
    assert all(result.record.jobs["main"].exit == 1 for result in found)


def test_equal_runs_have_equal_digests(scenarios: tuple[Scenario, ...]) -> None:
    first, again = ([result.record.digest for result in run_suite(scenarios)] for _ in range(2))
    assert first == again


def test_expectations_of_the_profile_are_compared(tmp_path: Path) -> None:
    (scenario,) = load(
        tmp_path,
        "  - {id: a, title: A, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, expect: {llm_calls: 1},"
        ' expect_in: {"1.4": {llm_calls: 2}}}\n',
    )
    assert run_one(scenario, "docs").mismatches == ()
    assert run_one(scenario, "1.4").mismatches == (Mismatch(("llm_calls",), 2, 1),)


LOOPING = """\
  - id: looping
    title: Goes on until a limit stops it
    agents: {worker: {}}
    limits: {max_token_usage: null}
    script: {worker: [{code: pass, repeat: forever}]}
    expect: {jobs: {main: {stop: max_turns}}}
"""


def test_a_preset_replaces_the_scenarios_own_but_not_its_limits(tmp_path: Path) -> None:
    (scenario,) = load(tmp_path, LOOPING)
    own = run_one(scenario, "docs")
    batch = run_one(scenario, "docs", preset="batch")
    assert (own.preset, batch.preset) == (None, "batch")
    assert batch.record.jobs["main"].turns == own.record.jobs["main"].turns + 10
    assert own.mismatches == batch.mismatches == ()


def test_a_preset_file_is_looked_for_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scenario,) = load(tmp_path / "suites", LOOPING)
    monkeypatch.chdir(tmp_path)
    Path("mine.env").write_text("STATEK_MAX_TURNS=1\n")
    Path("suites/mine.env").write_text("STATEK_MAX_TURNS=9\n")
    result = run_one(scenario, "docs", preset="mine.env")
    assert result.record.jobs["main"].turns == 2
    assert located_preset("mine.env") == str(tmp_path.resolve() / "mine.env")


def test_an_unknown_preset_is_bad_input(scenarios: tuple[Scenario, ...]) -> None:
    with pytest.raises(BadInput, match=line_with("preset 'bath'", "file", "built-in", "'batch'?")):
        run_one(scenarios[0], "docs", preset="bath")


def test_a_seed_replaces_the_scenarios_own(scenarios: tuple[Scenario, ...]) -> None:
    assert run_one(scenarios[0], "docs").record.seed == 0
    assert run_one(scenarios[0], "docs", seed=5).record.seed == 5


def test_the_built_in_suites_are_a_folder() -> None:
    assert builtin_suites().is_dir()


AGENT = """\
scenarios:
  - {id: one, title: One, engine: agent, agents: {worker: {}}, script: {worker: [{text: x}]}}
"""


def test_profiles_of_the_other_engine_are_answered_with_those_that_fit(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(AGENT)
    agents = load_or_fail([tmp_path])
    said = nothing_chosen(agents, profiles=["docs"])
    assert says(said, "profile docs", "statek engine", "1 scenario", "agent engine", "--profile hardened")


def test_a_variant_that_only_scenarios_of_statek_are_asked_for_names_their_profiles(
    scenarios: tuple[Scenario, ...],
) -> None:
    said = nothing_chosen(scenarios, profiles=["hardened"])
    assert says(said, "3 scenarios", "statek engine", "left out", "--profile docs, 1.2.5, 1.2 or 1.4")


@pytest.mark.parametrize(
    ("command", "facts"),
    [
        (["run", "--profile", "docs"], "--profile hardened"),
        (["run", "--profile", "hardend"], "for the agent engine: hardened; 'hardened'?"),
        (["limits", "--stops"], "1 scenario for the agent engine; left out; --profile hardened"),
        (["limits"], "1 scenario for the agent engine; left out; --profile hardened"),
        (["limits", "--budget-tokens", "100"], "1 scenario for the agent engine; left out"),
        (["compare", "1.2", "1.4"], "all of these scenarios use the agent engine"),
    ],
)
def test_commands_say_why_scenarios_of_engine_agent_are_left_out(
    tmp_path: Path, command: list[str], facts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(AGENT)
    with pytest.raises(SystemExit) as caught:
        main([*command, str(tmp_path)])
    assert caught.value.code == 2
    assert says(capsys.readouterr().err, *facts.split("; "))
