"""A small suite of scenarios, and runs of pytest on it."""

from __future__ import annotations

# Loaded here once: every run in this process would otherwise import them anew, and take them back at its end. Of some
# others' modules a second copy would break what holds the first: exceptions that are told by their class, pickles.
import multiprocessing.heap
import multiprocessing.sharedctypes  # noqa: F401
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import anyio  # noqa: F401
import httpcore  # noqa: F401
import httpcore2  # noqa: F401
import httpx  # noqa: F401
import pytest

import pytest_statek
import statek_sim.gate.baseline
import statek_sim.gate.evals_policy
import statek_sim.reporting.artifact
import statek_sim.reporting.page.data
import statek_sim.reporting.report_text
import statek_sim.server.llm_server
import statek_sim.suite.run
import statek_sim.testing
import statek_sim.wall_clock  # noqa: F401
from statek_sim.usage.tokenizers import tokenizer_for_model

for module in pkgutil.iter_modules(pytest_statek.__path__, "pytest_statek."):
    import_module(module.name)

# The workers of each run are copies of this process: without it they would load the vocabulary, one by one.
tokenizer_for_model("gpt-4o").tokenizer.count(" ")

TURNS = """\
suite: limits
defaults:
  agents: {worker: {}}
scenarios:
  - id: one-turn
    title: a job that exits at once takes one turn
    source: "000 What the Limits Mean"
    proves: [H-01, H-02]
    tags: [quick]
    script: {worker: [{code: "exit('ok')"}]}
    expect: {jobs: {main: {exit: ok, llm_calls: 1}}}
  - id: one-turn-more
    title: a job that exits at once takes two turns
    profiles: [docs]
    script: {worker: [{code: "exit('ok')"}]}
    expect: {jobs: {main: {exit: ok, llm_calls: 2}}}
"""


Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def _without_what_no_run_here_uses(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plugins of others out of the runs: two fifths of what a new process of pytest imports is theirs."""
    # After pytester, which takes the variable away.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:anyio -p no:hypothesispytest")


@pytest.fixture
def write(pytester: pytest.Pytester) -> Write:
    """Writes a file of the project under test, folders included."""

    def write_file(name: str, text: str) -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write_file


@pytest.fixture
def suite(write: Write) -> Path:
    """A file with two scenarios: one passes under three profiles, the other fails under `docs`."""
    return write("scenarios/turns.yaml", TURNS)
