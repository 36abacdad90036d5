"""Exploring engine two: its process dies at every distinct moment, and a new one goes on from commits and receipts."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.agent_moments import Moments
from statek_sim.backends.deviating import with_deviations
from statek_sim.cli import main
from statek_sim.explore.agent_runs import AgentExplorer
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.plan import kill_at
from statek_sim.explore.result import Count
from statek_sim.explore.running import explore_one
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from tests.explore import samples

PAYS = """
suite: samples
scenarios:
  - id: pays
    title: An agent looks, pays and says so.
    engine: agent
    profiles: [{profile}]
    tools:
      look: {{description: Look., result: seen, after_crash: again}}
      pay: {{description: Pay., result: paid{pay}}}
    agents: {{assistant: {{prompt: You work.}}}}
    jobs: {{main: {{message: Work.}}}}
    script: {{assistant: [{{tools: [{{name: look}}]}}, {{tools: [{{name: pay}}], latency: 5}}, {{text: Done.}}]}}
"""
COIN = """
suite: samples
scenarios:
  - id: coin
    title: An agent throws a coin.
    engine: agent
    profiles: [hardened]
    agents: {assistant: {prompt: You throw., tools: ["coins:toss"]}}
    jobs: {main: {message: Throw.}}
    script: {assistant: [{tools: [{name: toss}]}, {text: Done.}]}
"""
CRASHES = Bounds(kinds=("crashes",))


def scenario(folder: Path, *, profile: str = "hardened", pay: str = "") -> Scenario:
    path = folder / "pays.yaml"
    path.write_text(PAYS.format(profile=profile, pay=pay))
    return load_or_fail([path])[0]


def test_a_hardened_agent_ends_as_undisturbed_or_asks_whether_it_paid(tmp_path: Path) -> None:
    found = explore_one(scenario(tmp_path), "hardened", own=(), bounds=CRASHES)
    assert found.failures == ()
    assert found.proven["crashes"].complete
    assert {cell.came for cell in found.cells} == {"same", "asks"}
    asked = {cell.what for cell in found.cells if cell.came == "asks"}
    assert asked == {"commit calling", "pay worked"}


def test_a_tool_that_can_tell_whether_it_happened_needs_nobody(tmp_path: Path) -> None:
    found = explore_one(scenario(tmp_path, pay=", after_crash: happened"), "hardened", own=(), bounds=CRASHES)
    assert "asks" not in {cell.came for cell in found.cells}


def test_the_documents_agent_pays_twice_and_the_case_plays_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario(tmp_path, profile="document")
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "pays.yaml", "--executor", "serial", "--save", "found"])
    assert exit_.value.code == 1
    out = capsys.readouterr().out
    assert "FAILED samples/pays[document] agent-tools-work-once" in out
    assert "  pay worked 2 times for main, undisturbed 1 times" in out
    case = "found/pays-document-agent-tools-work-once.yaml"
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", case])
    assert exit_.value.code == 1
    assert "pay worked 2 times for main, undisturbed 1 times" in capsys.readouterr().out
    Path(case).write_text(Path(case).read_text().replace("kill: 1", "kill: 90"))
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", case])
    assert exit_.value.code == 0
    assert "(no occasion for: kill after event 90" in capsys.readouterr().out


def test_pairs_are_a_second_death_after_the_first(tmp_path: Path) -> None:
    found = explore_one(
        scenario(tmp_path, pay=", after_crash: again"),
        "hardened",
        own=(),
        bounds=Bounds(kinds=("crashes",), depth=2),
    )
    assert found.beyond.pairs.complete
    assert found.beyond.pairs.tried > found.proven["crashes"].tried
    assert found.failures == ()


def test_every_limit_and_every_failing_request_of_an_agent_is_played(tmp_path: Path) -> None:
    bounds = Bounds(kinds=("limits", "faults", "orders"))
    found = explore_one(scenario(tmp_path), "hardened", own=(), bounds=bounds)
    assert found.failures == ()
    # Three turns and as many answers: each request fails in four ways.
    assert found.proven["faults"] == Count(12, 12)
    assert found.proven["limits"].complete
    assert found.proven["limits"].of >= 3
    assert "orders" not in found.proven


def test_a_request_that_fails_and_a_limit_that_binds_really_do(tmp_path: Path) -> None:
    explorer = AgentExplorer(scenario(tmp_path), "hardened")
    refused = explorer.play((Deviation(fault="401", job="main", reply=2),))
    assert refused.record.jobs["main"].answer is None
    assert explorer.absent((Deviation(fault="401", job="main", reply=9),)) != ()
    stopped = explorer.play((Deviation(limit=LimitName.MAX_TURNS, value=0),))
    assert stopped.record.jobs["main"].stop == "max_turns"


def test_commits_that_nobody_looks_for_need_not_be_kept(tmp_path: Path) -> None:
    explorer = AgentExplorer(scenario(tmp_path), "hardened")
    every = Moments()
    run_agent_scenario(explorer.scenario, "hardened", moments=every)
    for point in every.points:
        kill = kill_at(point, 1.0)
        all_kept = Moments((kill,), every.taken)
        departed = with_deviations(explorer.scenario, (kill,))
        record = run_agent_scenario(departed, "hardened", moments=all_kept)
        assert explorer.play((kill,)).record.digest == record.digest, point


def test_what_has_crashes_of_its_own_is_not_explored(tmp_path: Path) -> None:
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + "    events: [{at: 1, crash: worker}, {at: 2, restart: worker}]\n")
    found = explore_one(load_or_fail([own])[0], "hardened", own=(), bounds=CRASHES)
    assert found.problem == "scenario 'pays': it has crashes of its own, and was written for these"


@pytest.mark.parametrize(
    ("extra", "words", "why"),
    [
        ("slots: {slots: 1}", (), "scenario 'pays': its runs take turns in slots"),
        ("events: [{at: 1, crash: worker}]", ("-q",), "scenario 'pays': it has crashes of its own"),
        ("", ("--kind", "orders"), "of engine agent crashes, limits, faults are varied"),
    ],
)
def test_where_nothing_could_be_explored_nothing_is_green(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: str, words: tuple[str, ...], why: str
) -> None:
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + f"    {extra}\n")
    with pytest.raises(SystemExit) as exit_:
        main(["explore", str(own), "--executor", "serial", *words])
    assert exit_.value.code == 2
    out = capsys.readouterr().out
    assert f"samples/pays[hardened]: not explored: {why}" in out
    assert out.endswith("1 scenario, 0 runs: nothing was explored\n")


def test_what_was_left_out_is_counted_beside_what_was_explored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario(tmp_path)
    (tmp_path / "thinkers.yaml").write_text(samples.THINKERS)
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "pays.yaml", "thinkers.yaml", "--kind", "orders", "--executor", "serial"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.endswith(" runs, 1 not explored: nothing fails\n")


def test_an_agent_departs_by_kill_fault_or_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = scenario(tmp_path).path
    own.write_text(own.read_text() + "    deviations: [{choose: 1, first: main}]\n")
    with pytest.raises(SystemExit) as exit_:
        main(["run", "pays.yaml"])
    assert exit_.value.code == 2
    assert (
        "deviations: choose is for engine statek; a run of engine agent departs by kill, fault or limit"
        in capsys.readouterr().err
    )


def test_two_moments_with_the_same_second_commits_and_effects_are_one(tmp_path: Path) -> None:
    explorer = AgentExplorer(scenario(tmp_path), "hardened")
    moments: Moments = explorer.play(()).moments
    assert 8 < len(moments.distinct()) < len(moments.points)


def test_an_agent_that_does_not_repeat_is_told_and_its_case_plays_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    samples.throws(monkeypatch)
    (tmp_path / "coin.yaml").write_text(COIN)
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "coin.yaml", "--executor", "serial", "--save", "found"])
    assert exit_.value.code == 1
    assert "FAILED samples/coin[hardened] the-run-repeats\n  event " in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", "found/coin-hardened-the-run-repeats.yaml"])
    assert exit_.value.code == 1
    assert "after a call of tool 'toss'" in capsys.readouterr().out


PRICED = ", harness: {budget: {prompt_price: 1000, completion_price: 2000}}"


@pytest.mark.parametrize(
    ("prices", "words", "code", "told"),
    [
        ("", ("--max-crash-tokens", "5"), 1, "FAILED pays: one crash adds 78 tokens, allowed are 5 (kill "),
        ("", ("--max-crash-tokens", "78"), 0, "nothing fails"),
        (
            PRICED,
            ("--max-crash-cost", "0.01"),
            1,
            "FAILED pays: one crash adds a cost of 0.08, allowed are 0.01 ",
        ),
        (PRICED, ("--max-crash-cost", "0.2"), 0, "nothing fails"),
        ("", ("--max-crash-cost", "9"), 1, "FAILED pays: what one crash adds to its cost is not known"),
    ],
)
def test_the_answers_that_died_with_their_process_are_the_price_of_a_crash(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    prices: str,
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    own = scenario(tmp_path).path
    own.write_text(own.read_text().replace("prompt: You work.", f"prompt: You work.{prices}"))
    with pytest.raises(SystemExit) as exit_:
        main(["explore", str(own), "--executor", "serial", *words])
    out = capsys.readouterr().out
    assert told in out
    assert exit_.value.code == code


def test_one_crash_asks_for_the_last_answer_again(tmp_path: Path) -> None:
    pays = scenario(tmp_path)
    found = explore_one(pays, "hardened", own=(), bounds=CRASHES)
    answers = [call.usage.measured_tokens for call in AgentExplorer(pays, "hardened").play(()).record.calls]
    assert found.crash.tokens == answers[-1] == max(answers)
