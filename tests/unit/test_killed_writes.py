"""What is rewritten is the old file or the new one after a SIGKILL at any moment, and nobody else's work is lost."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from statek_sim.cassettes.store import write
from statek_sim.reporting.artifact import write_artifact
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.accept import accept
from statek_sim.suite.run import run_one
from tests.killing import killed_everywhere
from tests.unit.test_cassettes_sharing import exchange, held
from tests.unit.test_cassettes_sharing import record as record_questions

# A process for each moment: those of the other modes take the same way, and run where there is more time.
MODES = ["all", "rewrite", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("once", "new_episodes"))]


def test_a_report_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    old, new = "old\n" * 9_000, "new\n" * 9_000
    seen = set()
    for _ in killed_everywhere(lambda: write_artifact(file, new), lambda: file.write_text(old)):
        seen.add(file.read_text())
        write_artifact(file, new)
        assert file.read_text() == new
    assert seen == {old, new}


def record(path: Path, run: str, order: int, mode: str, sharers: tuple[int, ...] = ()) -> None:
    record_questions(path, run, f"{run}{order}", mode=mode, sharers=sharers)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("earlier", [(1, 3), ()], ids=["not the first", "the first"])
def test_workers_of_a_run_lose_nothing_that_others_have_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, earlier: tuple[int, ...]
) -> None:
    cassette = tmp_path / "it.yaml"
    places = count()
    older = ["older"] if mode != "once" else []

    def before() -> None:
        # Notes about a cassette are beside its lock.
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / f"temporary{next(places)}"))
        cassette.unlink(missing_ok=True)
        if older:
            write(cassette, [exchange(name) for name in older])
        for order in earlier:
            record(cassette, "run", order, mode)

    kept = [] if mode == "rewrite" else older
    without = [*kept, *(f"run{order}" for order in earlier)] or older
    whole = [*kept, *(f"run{order}" for order in sorted((*earlier, 2)))]
    seen = set()
    for moment in killed_everywhere(lambda: record(cassette, "run", 2, mode), before):
        after = held(cassette) if cassette.exists() else []
        seen.add(tuple(after))
        assert after in (without, whole), moment
        record(cassette, "run", 4, mode)
        recorded = [name for name in after if name not in older or mode != "rewrite"]
        assert held(cassette) == [*recorded, "run4"], moment
    assert seen == {tuple(without), tuple(whole)}


@pytest.mark.parametrize("killed", ["new_episodes", "all"])
def test_a_run_that_rewrites_keeps_what_another_has_added_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    cassette = tmp_path / "it.yaml"
    places = count()

    def before() -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / f"temporary{next(places)}"))
        cassette.unlink(missing_ok=True)
        record(cassette, "rewrites", 1, "rewrite")

    seen = set()
    for moment in killed_everywhere(lambda: record(cassette, "adds", 1, killed), before):
        after = held(cassette)
        seen.add(tuple(after))
        record(cassette, "rewrites", 2, "rewrite")
        assert held(cassette) == [*after, "rewrites2"], moment
    assert seen == {("rewrites1",), ("rewrites1", "adds1")}


def test_what_was_there_stays_until_the_killed_have_had_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cassette = tmp_path / "it.yaml"
    places = count()
    sharers = (1, 2, 3)

    def before() -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / f"temporary{next(places)}"))
        write(cassette, [exchange("older")])
        record(cassette, "run", 1, "rewrite", sharers)

    seen = set()
    for moment in killed_everywhere(lambda: record(cassette, "run", 2, "rewrite", sharers), before):
        after = held(cassette)
        seen.add(tuple(after))
        record(cassette, "run", 3, "rewrite", sharers)
        kept = ["older"] if after == ["older", "run1"] else []
        assert held(cassette) == [*kept, *after[1:], "run3"], moment
        record(cassette, "run", 2, "rewrite", sharers)
        assert held(cassette) == ["run1", "run2", "run3"], moment
    assert seen == {("older", "run1"), ("older", "run1", "run2")}


CHANGE = """\
scenarios:
  - id: greets
    title: A job that ends.
    profiles: [docs]
    agents: {clerk: {}}
    script: {clerk: [{code: "exit('done')"}]}
    expect: {jobs: {main: {exit: wrong}}}
"""


def test_accepted_expectations_are_the_old_ones_or_the_new_ones(tmp_path: Path) -> None:
    file = tmp_path / "greets.yaml"
    file.write_text(CHANGE)
    results = [run_one(scenario, "docs") for scenario in load_or_fail([file])]
    seen = set()
    for _ in killed_everywhere(lambda: accept(results), lambda: file.write_text(CHANGE)):
        seen.add(file.read_text())
    assert seen == {CHANGE, CHANGE.replace("wrong", "done")}
