"""What `python -m tools.random_examples` keeps between calls."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from pathlib import Path

import grimp
import pytest

from tools.random_examples import APART, begun, main, seeds_of, state, total

NUMBERS = {
    "state": "abc",
    "seeds": {
        "1": {"1.2.7": {"examples": 5, "differ": 0}, "1.4.2": {"examples": 5, "differ": 2}},
        "2": {"1.4.2": {"examples": 7, "differ": 0}},
    },
}


def test_a_second_call_on_the_same_state_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(NUMBERS), encoding="utf-8")

    assert begun(file, "abc") == NUMBERS


def test_numbers_of_another_state_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    file.write_text(json.dumps(NUMBERS), encoding="utf-8")

    assert begun(file, "abc with changes") == {"state": "abc with changes", "seeds": {}}
    assert begun(tmp_path / "missing.json", "abc") == {"state": "abc", "seeds": {}}


def test_the_sums_are_per_release_and_of_all() -> None:
    assert list(total(NUMBERS)) == [
        "1.2.7: 5 random examples, 0 differ",
        "1.4.2: 12 random examples, 2 differ",
        "all: 17 random examples, 2 differ, 2 seeds, state abc",
    ]


def test_seeds_are_named_by_the_first_and_their_count() -> None:
    assert seeds_of("3003:7") == range(3003, 3010)
    assert seeds_of("5") == range(5, 6)
    for wrong in ("x", "1:x", "1:0", ""):
        with pytest.raises(ArgumentTypeError, match="expected FIRST:COUNT, such as 3001:12"):
            seeds_of(wrong)


def test_a_release_that_is_not_listed_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--release", "9.9.9", "--numbers", str(tmp_path / "numbers.json")]) == 2
    assert "--release 9.9.9: expected a listed release of Python 3." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_stands_apart_from_the_state_is_not_run_through() -> None:
    # A scenario's schema imports the other engine's fields; no example has any of them.
    graph = grimp.build_graph("statek_sim")
    runs = {"statek_sim.compare.matrix", "statek_sim.scenario.check"} | {
        module for module in graph.modules if module.startswith("statek_sim.backends.installed")
    }
    reached = {folder for module in runs for folder in map(_folder, graph.find_upstream_modules(module))}

    assert reached & set(APART) <= {"agent", "mcp"}
    assert reached >= {"runtime", "backends", "scenario", "world"}


def _folder(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_the_state_is_named_alike_until_a_file_changes() -> None:
    assert state() == state()
    assert len(state().partition(" ")[0]) == 12
