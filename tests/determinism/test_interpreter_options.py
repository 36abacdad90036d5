"""What Python may leave out: docstrings, assertions, and PyYAML's part in C. A difference is told."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from statek_sim.scenario import tree

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def run(*options: str) -> tuple[str, str]:
    """Return the digest of a suite without tools of its own, and what went to standard error."""
    command = [sys.executable, *options, "-m", "statek_sim.cli", "run", str(SCENARIOS / "workloads")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"^digest (\w+)$", done.stdout, re.MULTILINE)
    assert found is not None
    return found[1], done.stderr


@pytest.mark.slow
def test_without_docstrings_digests_that_show_none_are_the_same_and_the_command_says_that_others_are_not() -> (
    None
):
    usual, silent = run()
    bare, told = run("-OO")
    assert bare == usual
    assert silent == ""
    assert "Python runs without docstrings (-OO, PYTHONOPTIMIZE=2)" in told


@pytest.mark.slow
def test_without_libyaml_built_in_files_mean_the_same_or_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The grammar in Python takes its time: a part of the files.
    chosen = sorted(SCENARIOS.rglob("*.yaml"))[::4]
    fast = {path: tree.parse(path.read_text(encoding="utf-8")) for path in chosen}
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    slow = {path: parsed(path) for path in chosen}
    refused = {path: found for path, found in slow.items() if isinstance(found, str)}
    assert [one for one in refused.values() if "PyYAML is without libyaml here" not in one] == []
    assert {path: fast[path] for path in slow.keys() - refused.keys()} == {
        path: slow[path] for path in slow.keys() - refused.keys()
    }
    assert len(refused) < len(chosen) // 2


def parsed(path: Path) -> tree.Node | str | None:
    """Return what a file holds, or why it was refused."""
    try:
        return tree.parse(path.read_text(encoding="utf-8"))
    except tree.Malformed as refused:
        return refused.message
