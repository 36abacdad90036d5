"""Scenarios under the watchdog: the same results, and one that hangs fails alone."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.diff import failure_text
from statek_sim.suite.result import Outcome, ScenarioResult
from statek_sim.suite.run import builtin_suites, chosen, run_one
from statek_sim.suite.watched import Pair, WatchedRunner, run_watched
from tests.says import says

TIGHT = WatchdogLimits(cpu=1.0, wall=60.0, memory=300 * 2**20)
TOOLS = """\
from statek_sim import tool

@tool
def hang(**kwargs):
    while True:
        pass

def spin():
    while True:
        pass

@tool
def hoard(**kwargs):
    return len(b"x" * 2**30)

@tool
def leave(**kwargs):
    import os
    os._exit(9)
"""
WAITING = """\
import subprocess
from pathlib import Path
from statek_sim import tool

@tool
def wait(**kwargs):
    shell = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    Path(__file__).with_name("started").write_text(f"{shell.pid} {shell.stdout.readline()}")
    shell.wait()
"""
SCENARIOS = """\
suite: hostile
defaults:
  profiles: [docs]
  agents: {worker: {tools: ["hostile_tools:hang", "hostile_tools:hoard", "hostile_tools:leave"]}}
scenarios:
  - {id: fine, title: Fine, script: {worker: [{code: exit(1)}]}, expect: {jobs: {main: {exit: 1}}}}
  - {id: hangs, title: Hangs, script: {worker: [{code: print(1)}, {code: hang()}]}, expect: {}}
  - {id: hoards, title: Hoards, script: {worker: [{code: hoard()}]}, expect: {error: {contains: ""}}}
  - {id: leaves, title: Leaves, script: {worker: [{code: leave()}]}, expect: {}}
  - {id: fine-too, title: Fine, script: {worker: [{code: exit(2)}]}, expect: {jobs: {main: {exit: 2}}}}
"""
AGENT = """\
scenarios:
  - id: hangs
    title: Hangs
    engine: agent
    tools: {look: {description: Look., result: seen}, spin: {description: Spin., call: "hostile_tools:spin"}}
    agents: {assistant: {prompt: You work.}}
    script: {assistant: [{tools: [{name: look}]}, {tools: [{name: spin}]}]}
    expect: {}
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Pair, ...]:
    (tmp_path / "hostile_tools.py").write_text(TOOLS, "utf-8")
    (tmp_path / "hostile.yaml").write_text(SCENARIOS, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return chosen(load_or_fail([tmp_path / "hostile.yaml"]))


def test_an_agent_that_hangs_in_its_tool_is_told_with_its_turn(
    hostile: tuple[Pair, ...], tmp_path: Path
) -> None:
    (tmp_path / "agent.yaml").write_text(AGENT, "utf-8")
    [result] = run_watched(chosen(load_or_fail([tmp_path / "agent.yaml"])), run_one, TIGHT, workers=1)
    assert says(told(result) or "", "watchdog", "1 s CPU", "turn 2", "job main")


def told(result: ScenarioResult) -> str | None:
    return None if result.record.error is None else result.record.error.message


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_what_hangs_hoards_or_leaves_fails_alone(hostile: tuple[Pair, ...], workers: int) -> None:
    results = list(run_watched(hostile, run_one, TIGHT, workers=workers))
    first, hangs, hoards, leaves, last = map(told, results)
    assert (first, last) == (None, None)
    assert says(hangs or "", "watchdog", "1 s CPU", "turn 2", "job main")
    assert says(hoards or "", "watchdog", "300 MiB of memory", "turn 1", "job main")
    assert says(leaves or "", "watchdog", "exit code 9", "turn 1", "job main")
    assert says(failure_text(results[1]), "unknown", "trace", "lost")
    assert results[1].seconds < TIGHT.wall
    assert [result.outcome for result in results] == [
        Outcome.PASSED,
        Outcome.FAILED,
        Outcome.FAILED,
        Outcome.FAILED,
        Outcome.PASSED,
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="which processes a worker started is read from /proc")
def test_a_command_that_a_tool_waits_for_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waiting_tools.py").write_text(WAITING, "utf-8")
    (tmp_path / "waits.yaml").write_text(
        "defaults: {profiles: [docs], agents: {worker: {tools: ['waiting_tools:wait']}}}\n"
        "scenarios:\n  - {id: waits, title: Waits, script: {worker: [{code: wait()}]}, expect: {}}\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    pairs = chosen(load_or_fail([tmp_path / "waits.yaml"]))
    [result] = run_watched(pairs, run_one, replace(TIGHT, wall=2.0), workers=1)
    assert says(told(result) or "", "watchdog", "2 s passed", "turn 1", "job main")
    for line in (tmp_path / "started").read_text().split():
        # Nor is it gone at once on a machine that has much to do.
        deadline = time.monotonic() + 10
        while is_alive(line) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_alive(line)


def is_alive(process_id: str) -> bool:
    """Whether a process goes on; what was killed may stand in the list until somebody asks how it ended."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_one_at_a_time_ends_in_the_same_words(hostile: tuple[Pair, ...]) -> None:
    runner = WatchedRunner(run_one, TIGHT)
    try:
        first, hangs = (told(runner(*pair)) for pair in hostile[:2])
        assert first is None
        assert says(hangs or "", "watchdog", "1 s CPU", "turn 2", "job main")
        assert runner(*hostile[-1]).outcome is Outcome.PASSED
    finally:
        runner.close()


def test_results_are_the_same_whoever_runs(tmp_path: Path) -> None:
    pairs = chosen(load_or_fail([builtin_suites() / "claims"]), profiles=["1.4"])
    run = partial(run_one, preset="local", seed=3)
    here, there = (
        [replace(result, seconds=0.0) for result in run_watched(pairs, run, limits, seed=3)]
        for limits in (None, WatchdogLimits())
    )
    assert here == there


def raising(scenario: Scenario, profile: Profile) -> ScenarioResult:
    if scenario.id != "hangs":
        return run_one(scenario, profile)
    raise ZeroDivisionError("nobody thought of it")


def unsendable(scenario: Scenario, profile: Profile) -> ScenarioResult:
    result = run_one(scenario, profile)
    return replace(result, record=replace(result.record, ledger=(lambda: None,)))  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [TIGHT, None])
def test_a_run_that_breaks_fails_alone(hostile: tuple[Pair, ...], limits: WatchdogLimits | None) -> None:
    pairs = (hostile[0], hostile[1], hostile[-1])
    results = list(run_watched(pairs, raising, limits))
    assert [result.outcome for result in results] == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]
    assert (told(results[1]) or "").startswith(
        "ZeroDivisionError: nobody thought of it (in test_suite_watched.py:"
    )
    assert "please report it" in failure_text(results[1])


def test_a_result_that_no_process_can_be_sent_fails_alone(hostile: tuple[Pair, ...]) -> None:
    [result] = run_watched(hostile[:1], unsendable, TIGHT)
    assert "this is a bug in statek-sim" in (told(result) or "")
