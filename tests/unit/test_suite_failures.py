"""A scenario that fails under several profiles is told once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from statek_sim.suite.diff import failed_together, failure_text, name_of, told_after
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.suite.run import run_one
from tests.unit.suite_samples import load

WRONG = """\
  - id: wrong
    title: A wrong expectation
    agents: {worker: {}}
    script: {worker: [{code: print(1)}, {code: exit(3)}]}
    expect: {llm_calls: 3, jobs: {main: {exit: 4}}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failed(here: Path, text: str, *profiles: str) -> list[ScenarioResult]:
    (scenario,) = load(here, text)
    return [run_one(scenario, profile) for profile in profiles]


def test_the_same_failure_is_told_once_with_its_profiles(here: Path) -> None:
    results = failed(here, WRONG, "docs", "1.2", "1.4")
    (together,) = failed_together(results)
    assert name_of(together) == "samples/wrong[docs, 1.2, 1.4]"
    told = failure_text(*together)
    assert told.startswith(failure_text(results[0]).partition("  run just this one:")[0])
    assert told.endswith(
        "  run just this one:\n"
        "    statek-sim run file.yaml --select wrong --profile docs --profile 1.2 --profile 1.4\n"
        "    pytest 'file.yaml::samples/wrong[docs]' 'file.yaml::samples/wrong[1.2]' 'file.yaml::samples/wrong[1.4]'"
    )


def test_a_mismatch_of_one_profile_alone_says_which_one_and_comes_after_those_of_all(here: Path) -> None:
    first, second = failed(here, WRONG, "docs", "1.4")
    own = Mismatch(("jobs", "main", "turns"), 9, 8)
    second = dataclasses.replace(second, mismatches=(own, *second.mismatches))
    told = failure_text(first, second).splitlines()
    assert told[0].endswith(
        "; 2. jobs.main.exit: expected 4, got 3; 3. [1.4] jobs.main.turns: expected 9, got 8"
    )
    assert told[1:5] == [
        "",
        "  1. llm_calls: expected 3, got 2",
        "",
        "  2. jobs.main.exit: expected 4, got 3",
    ]


def test_a_failure_that_follows_another_says_only_what_is_new(here: Path) -> None:
    first, second = failed(here, WRONG, "docs", "1.4")
    assert told_after(second, first) == (
        "1. llm_calls: expected 3, got 2; 2. jobs.main.exit: expected 4, got 3\n\n"
        "  the failure is as under docs, shown above\n"
        "  pytest 'file.yaml::samples/wrong[1.4]'"
    )
    own = Mismatch(("jobs", "main", "turns"), 9, 8)
    apart = dataclasses.replace(second, mismatches=(second.mismatches[0], own))
    assert told_after(apart, first) == (
        "1. llm_calls: expected 3, got 2; 2. jobs.main.turns: expected 9, got 8\n\n"
        "  2. jobs.main.turns: expected 9, got 8\n\n"
        "  only under docs: jobs.main.exit: expected 4, got 3\n\n"
        "  everything else is as under docs, shown above\n"
        "  pytest 'file.yaml::samples/wrong[1.4]'"
    )
