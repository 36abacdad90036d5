"""The workflow and the hooks that users copy do what they say: valid for their tools, and really run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.packaging.environment import ROOT
from tests.tables import table_test

EXAMPLE: Final = ROOT / "examples" / "ci"
WORKFLOW: Final = EXAMPLE / "github-actions.yml"
HOOKS: Final = ROOT / ".pre-commit-hooks.yaml"
BIN: Final = Path(sys.executable).parent
LEAKING: Final = "cassette: {authorization: Bearer sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH}\n"


def command(*words: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a CI service would: with the programs of this environment, outputs together."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("STATEK_", "GIT_"))}
    return subprocess.run(
        words,
        cwd=cwd,
        env={**settings, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=600,
    )


def run_steps(folder: Path) -> tuple[int, str]:
    """Run the workflow's own commands in `folder` until one fails, as GitHub runs them; return exit code and output."""
    steps = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["gate"]["steps"]
    printed = ""
    for script in [step["run"] for step in steps if "run" in step]:
        (folder / "step.sh").write_text(script, encoding="utf-8")
        summary = str(folder / "summary.md")
        done = command("bash", "-e", "step.sh", cwd=folder, GITHUB_STEP_SUMMARY=summary)
        printed += done.stdout
        if done.returncode:
            return done.returncode, printed
    return 0, printed


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of what the examples run on."""
    return shutil.copytree(EXAMPLE, tmp_path / "project")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_workflow_is_one_that_github_takes() -> None:
    done = command("check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_workflow_passes_and_leaves_what_it_promises(project: Path) -> None:
    code, printed = run_steps(project)
    assert (code, "no worse than the baseline" in printed) == (0, True), printed
    assert "::error" not in printed
    assert (project / "summary.md").read_text("utf-8").startswith("#")
    uploaded = re.findall(r"^ +(gate\.\w+)$", WORKFLOW.read_text("utf-8"), re.MULTILINE)
    assert sorted(uploaded) == ["gate.json", "gate.xml"]
    assert all((project / name).stat().st_size for name in uploaded)


@pytest.mark.slow
def test_the_workflow_fails_at_the_line_of_a_preset_that_was_broken(project: Path) -> None:
    change(project / "presets" / "interactive.env", "STATEK_MAX_TURNS=6", "STATEK_MAX_TURNS=3")
    code, printed = run_steps(project)
    assert code == 1
    assert "::error file=presets/interactive.env,line=2," in printed


@pytest.mark.slow
def test_the_workflow_fails_when_a_preset_gets_worse_than_its_baseline(project: Path) -> None:
    change(project / "presets" / "interactive.env", "USAGE=15000", "USAGE=12000")
    code, printed = run_steps(project)
    assert code == 1
    assert "no worse than the baseline" in printed
    assert "needs 4,096 of 12,000 max_token_usage, 4,096 of 15,000 in the baseline" in " ".join(
        printed.split()
    )


def test_the_hooks_are_ones_that_pre_commit_takes() -> None:
    for check, file in (("manifest", HOOKS), ("config", EXAMPLE / "pre-commit-config.yaml")):
        done = command("pre-commit", f"validate-{check}", file, cwd=ROOT)
        assert done.returncode == 0, done.stdout


def test_the_example_uses_hooks_that_there_are() -> None:
    known = {hook["id"] for hook in yaml.safe_load(HOOKS.read_text("utf-8"))}
    config: dict[str, Any] = yaml.safe_load((EXAMPLE / "pre-commit-config.yaml").read_text("utf-8"))
    assert {hook["id"] for repo in config["repos"] for hook in repo["hooks"]} == known


@table_test(
    ("hook", "path", "judged"),
    [
        ("statek-gate", "presets/interactive.env", True),
        ("statek-gate", "deploy/statek/eu/batch.env", True),
        ("statek-gate", "statek.env", True),
        ("statek-gate", "config/my-presets/a.env", True),
        ("statek-gate", ".env", False),
        ("statek-gate", "config/.env", False),
        ("statek-gate", "presets/README.md", False),
        ("statek-cassette-scan", "tests/cassettes/desk/refund.yaml", True),
        ("statek-cassette-scan", "cassette.yml", True),
        ("statek-cassette-scan", "scenarios/claims.yaml", False),
    ],
)
def test_a_hook_takes_the_files_it_is_for(hook: str, path: str, *, judged: bool) -> None:
    (files,) = [one["files"] for one in yaml.safe_load(HOOKS.read_text("utf-8")) if one["id"] == hook]
    assert bool(re.search(files, path)) is judged


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="pre-commit installs hooks from a git repository")
def test_the_hooks_run_in_pre_commit(project: Path, tmp_path: Path) -> None:
    cassettes = project / "tests" / "cassettes"
    cassettes.mkdir(parents=True)
    (cassettes / "desk.yaml").write_text("cassette: {}\n", encoding="utf-8")
    (project / ".env").write_text("SECRET_OF_THE_APPLICATION=1\n", encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "--all", "--force")):
        assert command("git", *words, cwd=project).returncode == 0

    def tried() -> tuple[int, str]:
        home = str(tmp_path / "pre-commit")
        done = command("pre-commit", "try-repo", ROOT, "--all-files", cwd=project, PRE_COMMIT_HOME=home)
        return done.returncode, done.stdout

    code, printed = tried()
    assert (code, printed.count("Passed")) == (0, 2), printed
    change(project / "presets" / "interactive.env", "STATEK_MAX_TURNS=6", "STATEK_MAX_TURNS=2")
    (cassettes / "desk.yaml").write_text(LEAKING, encoding="utf-8")
    code, printed = tried()
    assert (code, printed.count("exit code: 1")) == (1, 2), printed
    assert "presets/interactive.env:2: `presets/interactive.env`: stopped `short-task`" in printed
    assert "tests/cassettes/desk.yaml:1" in printed


def test_what_make_starts_keeps_its_bytecode_where_the_surroundings_say_no() -> None:
    makefile = 'include Makefile\nshown:\n\t@echo "<$$PYTHONDONTWRITEBYTECODE>"\n'
    done = subprocess.run(
        ["make", "--no-print-directory", "-f", "-", "shown"],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        input=makefile,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "<>\n"
