"""Large scenarios are explored in shares: together they find what one worker finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statek_sim.executors.executor import ProcessExecutor, SerialExecutor
from statek_sim.explore import workers as shares
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.result import CrashCost, Explored, Failure, ToolCertificate
from statek_sim.explore.variation import undisturbed
from statek_sim.explore.workers import explore_all
from statek_sim.scenario.events import Deviation
from tests.explore import samples


def parts(folder: Path, text: str, of: int) -> list[Explored]:
    scenario = samples.scenario(folder, text)
    return [Explorer(scenario, "docs", bounds=Bounds(share=(number, of))).explore() for number in range(of)]


@pytest.mark.parametrize("text", [samples.CLAIM, samples.WAITS, samples.COIN])
@pytest.mark.parametrize("of", [2, 5])
def test_shares_joined_are_what_one_worker_finds_but_for_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, of: int
) -> None:
    samples.throws(monkeypatch)
    whole = Explorer(samples.scenario(tmp_path, text), "docs").explore()
    found = shares.joined(parts(tmp_path, text, of))
    assert whole.cells
    assert found == replace(whole, runs=found.runs)


def test_every_executor_finds_the_same_in_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SHARE", 120)
    pairs = [(samples.scenario(tmp_path, text), "docs") for text in (samples.CLAIM, samples.WAITS)]
    whole = [Explorer(*pair).explore() for pair in pairs]
    with SerialExecutor() as one:
        alone = list(explore_all(pairs, executor=one))
    expected = [replace(found, runs=0) for found in whole]
    with ProcessExecutor(2) as two:
        # Where another thread runs, workers are no copies of this process, and divide by the usual size: fewer runs.
        assert [replace(found, runs=0) for found in explore_all(pairs, executor=two)] == expected
    assert [replace(found, runs=0) for found in alone] == expected
    assert alone[0].runs > whole[0].runs


def test_only_crashes_that_need_no_others_are_divided(tmp_path: Path) -> None:
    base, _ = undisturbed(samples.scenario(tmp_path, samples.CLAIM), "docs")
    many = replace(base, events=base.events * 10_000)
    assert shares.shares_of(base, Bounds()).number == 1
    assert shares.shares_of(many, Bounds()).number > 1
    for bounds in (Bounds(depth=2), Bounds(only=(3, 0)), Bounds(kinds=("limits",))):
        assert shares.shares_of(many, bounds).number == 1


def test_the_smallest_failure_and_the_worst_verdict_count(tmp_path: Path) -> None:
    one, two = parts(tmp_path, samples.CLAIM, 2)
    kill = Deviation(kill=3)

    def of(part: Explored, deviations: int, after: str | None, tokens: int) -> Explored:
        failure = Failure(invariant="i", message=f"{deviations}", deviations=(kill,) * deviations, times=2)
        tool = ToolCertificate(tool="t", own=True, before="safe", during=None, after=after)
        cost = CrashCost(tokens, 1.0 / tokens, f"{tokens} tokens", f"{tokens} costs")
        return replace(part, failures=(failure,), tools=(tool,), crash=cost)

    found = shares.joined([of(one, 2, None, 5), of(two, 1, "leaks", 4)])
    (failure,), (tool,) = found.failures, found.tools
    assert (failure.message, failure.times) == ("1", 4)
    assert (tool.before, tool.during, tool.after) == ("safe", None, "leaks")
    assert found.crash == CrashCost(5, 0.25, "5 tokens", "4 costs")
