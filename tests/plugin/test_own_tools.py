"""Scenarios whose tools are `module:attribute` of the project: found however pytest is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = """\
from statek_sim import tool

@tool
def greet(**kwargs):
    return "hello"
"""

GREETING = """\
scenarios:
  - id: greeting
    title: A tool of the project greets
    profiles: [docs]
    agents: {worker: {tools: ["greeting_tools:greet"]}}
    script: {worker: [{code: "exit(greet())"}]}
    expect: {jobs: {main: {exit: hello}}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """A project whose scenarios stand beside their tools."""
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(greeting_tools=TOOLS)
    pytester.makefile(".yaml", greeting=GREETING)
    return pytester.path


def plain_pytest(*args: str, folder: Path) -> str:
    """Return what `pytest` prints, started in a folder that neither Python nor the environment adds to the path."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "1"), id="xdist", marks=pytest.mark.slow)]
)
def test_a_tool_is_found_where_pytest_was_called(project: Path, workers: tuple[str, ...]) -> None:
    assert "1 passed" in plain_pytest("--statek-scenarios=greeting.yaml", *workers, folder=project)


def test_a_tool_is_found_for_a_scenario_that_is_named_by_its_path(project: Path) -> None:
    assert "1 passed" in plain_pytest("greeting.yaml", folder=project)


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone", marks=pytest.mark.slow), pytest.param(("-n", "1"), id="xdist")]
)
def test_a_tool_is_found_in_the_rootdir(project: Path, workers: tuple[str, ...]) -> None:
    inner = project / "inner"
    inner.mkdir()
    assert "1 passed" in plain_pytest("--statek-scenarios=../greeting.yaml", *workers, folder=inner)


def test_a_tool_is_found_where_pytest_was_called_although_the_rootdir_is_elsewhere(project: Path) -> None:
    other = project / "other"
    other.mkdir()
    text = plain_pytest("--statek-scenarios=greeting.yaml", f"--rootdir={other}", folder=project)
    assert "1 passed" in text


@pytest.mark.usefixtures("project")
def test_the_path_is_as_it_was_after_the_run(pytester: pytest.Pytester) -> None:
    before = list(sys.path)
    pytester.runpytest("--statek-scenarios=greeting.yaml").assert_outcomes(passed=1)
    assert sys.path == before


def test_a_run_without_scenarios_leaves_the_path_alone(pytester: pytest.Pytester, project: Path) -> None:
    pytester.makepyfile(test_own=f"import sys\ndef test_own(): assert {str(project)!r} not in sys.path")
    text = plain_pytest("--import-mode=importlib", "test_own.py", folder=project)
    assert "1 passed" in text
