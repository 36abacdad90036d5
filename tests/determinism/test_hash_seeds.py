"""Same scenarios in, same traces out: whatever the process, its environment and its folder are like."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from statek_sim.scenario.files import is_eval_file
from tools.elsewhere import digests

pytestmark = pytest.mark.slow

SCENARIOS: Final = Path(__file__).resolve().parents[2] / "scenarios"

CLUTTER: Final = {
    "STATEK_MAX_TURNS": "1",
    "STATEK_MAX_EXCEPTIONS": "1",
    "STATEK_MAX_TOKEN_USAGE": "1",
    "STATEK_CHAT_STYLE": "DIRECT",
    "STATEK_DEFAULT_DIFFICULTY": "L",
    "DEFAULT_LLM_API_PROVIDER": "NOWHERE",
    "OPENAI_API_KEY": "none",
}
"""Settings of a real deployment, which scenarios must not see."""

WORLDS: Final[Mapping[str, Mapping[str, str]]] = {
    "another hash seed": {"PYTHONHASHSEED": "1"},
    "random hashes": {"PYTHONHASHSEED": "random"},
    "another time zone": {"TZ": "Asia/Kathmandu"},
    "settings in the environment": CLUTTER,
    "a locale without Unicode": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}


def report(folder: Path, *arguments: str | Path, **variables: str) -> dict[str, Any]:
    """Return the report of `statek-sim run`, run in `folder` with hash seed 0 and UTC unless `variables` differ."""
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "TZ": "UTC", **variables}
    file = folder / "report.json"
    command = [sys.executable, "-m", "statek_sim", "run", "--quiet", "--json", file, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    # Whether the scenarios pass is for other tests to say.
    assert file.exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return report(tmp_path_factory.mktemp("usual"))


@pytest.mark.parametrize("variables", WORLDS.values(), ids=WORLDS)
def test_the_traces_are_the_same_with(
    variables: Mapping[str, str], usual: Mapping[str, Any], tmp_path: Path
) -> None:
    other = report(tmp_path, **variables)
    assert digests(other) == digests(usual)
    assert other == usual


def test_the_page_is_the_same_file_with_another_hash_seed_and_locale(tmp_path: Path) -> None:
    suites = [SCENARIOS / suite for suite in ("claims", "delegation")]
    worlds = (WORLDS["another hash seed"], WORLDS["a locale without Unicode"])
    for name, variables in zip(("one.html", "two.html"), worlds, strict=True):
        report(tmp_path, "--html", name, *suites, **variables)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_every_scenario_has_a_digest(usual: Mapping[str, Any]) -> None:
    found = digests(usual)
    assert len(found) == usual["summary"]["total"]
    assert [name for name, digest in found.items() if not re.fullmatch(r"[0-9a-f]{64}", digest)] == []


def test_a_scenario_leaves_nothing_behind_for_the_next(usual: Mapping[str, Any], tmp_path: Path) -> None:
    files = [path for path in sorted(SCENARIOS.glob("*/*.yaml"), reverse=True) if not is_eval_file(path)]
    assert digests(report(tmp_path, *files)) == digests(usual)
