"""`trace` and pytest with the installed backend: one interpreter finds this project and the real STATEK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from statek_sim.semantics import profile_of
from tools.environments import Environment, on_this_python

REAL = on_this_python()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REAL, reason="no real STATEK here; `make thorough` and `make conformance` install it"
    ),
]

STATEK_SIM = ("-m", "statek_sim")
MEASURED = ("measured_prompt", "measured_completion")
"""Fields that only the reference runtime's tokenizers can answer."""

OWN = """\
scenarios:
  - id: own
    title: A tool of the project answers
    agents: {clerk: {tools: ["desk_tools:greet"]}}
    script: {clerk: [{code: "exit(greet('Ada'))"}]}
    expect: {jobs: {main: {exit: hello Ada}}}
"""
TOOLS = """\
from statek import tool

@tool
def greet(name: str, **kwargs):
    return f"hello {name}"
"""


@pytest.fixture(params=REAL, ids=lambda one: one.release)
def real(request: pytest.FixtureRequest) -> Environment:
    environment: Environment = request.param
    return environment


def run(
    arguments: Sequence[str], *, folder: Path, real: Environment | None = None
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter; with `real` it finds that release's packages too."""
    environment: Mapping[str, str] = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    if real is not None:
        (packages,) = (real.folder / "lib").glob("python3*/site-packages")
        environment = {**environment, "PYTHONPATH": str(packages)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def traced(text: str) -> list[dict[str, object]]:
    events: list[dict[str, object]] = [json.loads(line) for line in text.splitlines()]
    return [{key: value for key, value in event.items() if key not in MEASURED} for event in events]


def test_the_trace_of_the_installed_package_is_that_of_the_reference(
    tmp_path: Path, real: Environment
) -> None:
    scenario = "worker-dies-in-claim"
    theirs = run((*STATEK_SIM, "trace", scenario, "--backend", "installed"), folder=tmp_path, real=real)
    profile = profile_of(real.release)
    assert profile is not None
    ours = run((*STATEK_SIM, "trace", scenario, "--profile", profile), folder=tmp_path)

    assert (theirs.returncode, theirs.stderr, ours.returncode) == (0, "", 0)
    assert traced(theirs.stdout) == traced(ours.stdout)
    assert len(traced(theirs.stdout)) > 20


def test_trace_says_how_a_run_failed_and_that_the_profile_is_the_packages_own(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text(OWN.replace("exit(greet('Ada'))", "1"), encoding="utf-8")
    (tmp_path / "desk_tools.py").write_text(TOOLS, encoding="utf-8")
    command = (*STATEK_SIM, "trace", "own", str(path), "--backend", "installed")

    failed = run(command, folder=tmp_path, real=REAL[-1])
    refused = run((*command, "--profile", "docs"), folder=tmp_path, real=REAL[-1])

    assert failed.returncode == 1
    assert failed.stderr.startswith("the run failed: ScriptExhausted: job 'main' (agent 'clerk', turn 2")
    assert traced(failed.stdout)[-1]["event"] == "LLMRequested"
    assert (refused.returncode, refused.stderr) == (
        2,
        "--profile: not available with --backend installed, which uses the profile for the installed version\n",
    )


@pytest.mark.skipif(find_spec("statek") is not None, reason="statek is installed here")
def test_without_statek_trace_says_what_to_install(tmp_path: Path) -> None:
    done = run((*STATEK_SIM, "trace", "unfit-call-runs-once", "--backend", "installed"), folder=tmp_path)

    assert done.returncode == 2
    assert done.stderr.endswith(f"install it there with: {sys.executable} -m pip install 'statek[dbzero]'\n")


def test_pytest_finds_a_tool_of_the_project_by_its_own_settings(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "desk_tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\n", encoding="utf-8")
    pytest_run = ("-P", "-m", "pytest", "-p", "no:cacheprovider", "--statek-backend=installed")

    found = run((*pytest_run, "--statek-scenarios=own.yaml"), folder=tmp_path, real=REAL[-1])
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    missing = run((*pytest_run, "--statek-scenarios=own.yaml"), folder=tmp_path, real=REAL[-1])

    assert "1 passed" in found.stdout, found.stdout + found.stderr
    assert "own.yaml:2: scenario 'own': 'desk_tools:greet' cannot be imported: ModuleNotFoundError" in (
        missing.stdout
    )
