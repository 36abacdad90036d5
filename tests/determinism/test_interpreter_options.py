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
def test_without_libyaml_built_in_files_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = sorted(SCENARIOS.rglob("*.yaml"))
    fast = {path: tree.parse(path.read_text(encoding="utf-8")) for path in chosen}
    # The grammar in Python takes its time, and refuses a `?` in the plain text of a flow mapping.
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    assert {path: tree.parse(path.read_text(encoding="utf-8")) for path in chosen} == fast


def test_without_libyaml_a_file_that_it_would_take_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "scenarios:\n  - {title: Who is it?}\n"
    assert tree.parse(text) is not None
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    with pytest.raises(tree.Malformed, match="PyYAML is without libyaml here, which takes more"):
        tree.parse(text)
