"""`statek-sim init` writes a folder that passes, and overwrites nothing; `tools` says what scenarios can use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from statek_sim.cli import main
from statek_sim.cli.init import FILES
from statek_sim.tool_names import BUILT_IN_TOOLS


def ran(*arguments: str) -> object:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    return exit_.value.code or 0


@pytest.fixture
def starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert ran("init", "mine") == 0
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_everything_in_the_starter_folder_passes(starter: Path) -> None:
    assert {path.relative_to(starter).as_posix() for path in starter.rglob("*") if path.is_file()} == set(
        FILES
    )
    assert ran("validate", "scenarios") == 0
    assert ran("run", "scenarios", "--quiet") == 0
    assert ran("gate", "presets/orders.env", "scenarios", "--policy", "policy.toml") == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=starter, capture_output=True, text=True, check=False)
    assert "11 passed" in done.stdout, done.stdout + done.stderr


def test_the_workflow_runs_what_the_command_says(starter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workflow = yaml.safe_load((starter / ".github/workflows/statek.yml").read_text("utf-8"))
    commands = [step["run"].strip() for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    capsys.readouterr()
    assert ran("init") == 0
    *_, first, second, third = (line.strip() for line in capsys.readouterr().out.splitlines())
    assert commands[1:3] == [first, second]
    assert commands[3].startswith(third.replace("orders.env", "*.env"))


def test_the_workflow_installs_from_the_repository_that_the_package_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = {
        "url": "https://git.example/statek.git",
        "vcs_info": {"vcs": "git", "commit_id": "c0ffee"},
    }
    installed = tmp_path / "site" / "pytest_statek-9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Name: pytest-statek\n", "utf-8")
    (installed / "direct_url.json").write_text(json.dumps(origin), "utf-8")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert ran("init", str(tmp_path / "mine")) == 0
    workflow = yaml.safe_load((tmp_path / "mine/.github/workflows/statek.yml").read_text("utf-8"))
    install = next(step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step)
    assert install.endswith(" install 'pytest-statek @ git+https://git.example/statek.git@c0ffee'")


def test_what_is_there_is_kept(starter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (starter / "policy.toml").write_text("mine", "utf-8")
    (starter / "presets" / "orders.env").unlink()
    capsys.readouterr()
    assert ran("init") == 0
    out = capsys.readouterr().out.splitlines()
    assert (starter / "policy.toml").read_text("utf-8") == "mine"
    assert "kept  policy.toml" in out
    assert [line for line in out if line.startswith("wrote")] == ["wrote presets/orders.env"]


def test_tests_that_are_there_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n", "utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-x'\n", "utf-8")
    (tmp_path / "tox.ini").write_text("[tox]\n", "utf-8")
    assert ran("init") == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")]
    assert notes == [
        "note: because of pytest.ini, pytest no longer reads pyproject.toml; move the pytest settings to pytest.ini"
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "test_own.py::test_own" in done.stdout, done.stdout + done.stderr


def test_a_file_in_the_place_of_the_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").touch()
    assert ran("init", str(tmp_path / "mine")) == 2
    assert capsys.readouterr().err.endswith("mine: expected a folder, found a file\n")


def test_every_built_in_tool_is_listed_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("list", "tools") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert sorted(line.strip().partition("(")[0] for line in heads) == sorted(BUILT_IN_TOOLS)
    assert (
        lines[lines.index("  slow_echo(text, seconds)") + 1].strip()
        == "Print the text, wait, and return the text."
    )
