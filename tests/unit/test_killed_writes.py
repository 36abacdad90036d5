"""What is rewritten is the old file or the new one after a SIGKILL at any moment, and nobody else's work is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.cassettes.store import write
from statek_sim.reporting.artifact import write_artifact
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.accept import accept
from statek_sim.suite.run import run_one
from tests.killing import killed_everywhere
from tests.unit.test_cassettes_sharing import States, exchange, held, record

# A process for each moment: all moments, and the other modes, which take the same way, where there is more time.
SAMPLED = 3
MODES = [
    *((mode, SAMPLED) for mode in ("all", "rewrite")),
    *(pytest.param(mode, 1, marks=pytest.mark.slow) for mode in ("all", "rewrite", "once", "new_episodes")),
]


def test_a_report_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    old, new = "old\n" * 9_000, "new\n" * 9_000
    seen = set()
    for _ in killed_everywhere(lambda: write_artifact(file, new), lambda: file.write_text(old)):
        seen.add(file.read_text())
        write_artifact(file, new)
        assert file.read_text() == new
    assert seen == {old, new}


@pytest.mark.parametrize(("mode", "every"), MODES)
def test_a_cassette_is_as_before_a_test_or_as_after_it(tmp_path: Path, mode: str, every: int) -> None:
    cassette = tmp_path / "it.yaml"

    def before() -> None:
        write(cassette, [exchange("older")])

    seen = set()
    for _ in killed_everywhere(lambda: record(cassette, {}, "a1", mode=mode), before, every=every):
        seen.add(tuple(held(cassette)))
    assert seen == {("older",), ("a1",) if mode == "rewrite" else ("older", "a1")}


@pytest.mark.parametrize("every", [SAMPLED, pytest.param(1, marks=pytest.mark.slow)])
def test_what_was_there_stays_until_all_have_rewritten_their_part(tmp_path: Path, every: int) -> None:
    cassette = tmp_path / "it.yaml"
    sharers = (1, 2)

    def before() -> None:
        write(cassette, [exchange("older")])

    def run() -> None:
        states: States = {}
        record(cassette, states, "a1", sharers=sharers)
        record(cassette, states, "a2", sharers=sharers)

    seen = set()
    for _ in killed_everywhere(run, before, every=every):
        seen.add(tuple(held(cassette)))
    assert seen == {("older",), ("older", "a1"), ("a1", "a2")}


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
