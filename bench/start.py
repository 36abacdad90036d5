"""A test's startup cost: CPU seconds over plain pytest, for our fixtures and third-party ones.

All tests run in one environment, so each loads all plugins. Commands are measured on the starter project written by
`statek-sim init`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Final

from bench.entry import Entry, time_entry
from bench.server_setup import TOOLS
from bench.setup import ensure
from bench.sides import ROOT, processor, take_turns

ROUNDS_PER_RUN: Final = 3
"""Rounds of processes per run, because processes in one round differ by more than a goal allows."""

_OURS: Final = {
    "statek_llm": ("""
from statek_sim import Agent, code

def test_it(statek_runtime, statek_llm):
    statek_llm.script(worker=[code("exit('done')")])
    statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
""", 0.2),
    "statek_agent": ("""
from statek_sim import text, tool_call

def look(item: str) -> str:
    "Count an item."
    return item

def test_it(statek_agent):
    agent = statek_agent(tools=[look], script=[tool_call("look", item="nut"), text("3")])
    assert agent.run("How many?").answer == "3"
""", 0.25),
    "statek_guest": ("""
from statek_sim import text

def test_it(statek_guest):
    guest = statek_guest(script=[text("3")])
    assert guest.ask([{"role": "user", "content": "How many?"}])["content"] == "3"
""", 0.25),
    "statek_llm_server": ("""
def test_it(statek_llm_server):
    assert statek_llm_server.url
""", 0.2),
}  # fmt: skip
"""A test with each fixture, and the seconds it may take over plain pytest."""
_THEIRS: Final = {
    "pydantic-ai's TestModel": """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

def look(item: str) -> str:
    "Count an item."
    return item

def test_it():
    assert Agent(TestModel(), tools=[look]).run_sync("How many?").output
""",
    "pytest-recording": """
import pytest

@pytest.mark.vcr
def test_it():
    pass
""",
}
_PLAIN: Final = "plain pytest"
_COMMANDS: Final = {
    "run scenarios": 0.5,
    "gate presets/orders.env scenarios --policy policy.toml": 0.6,
    "validate scenarios": 0.25,
    "--help": 0.12,
    "--version": 0.1,
}
"""Commands on the starter project, and the seconds each may take."""


def start_entries(runs: int) -> Iterator[Entry]:
    """Measure tests and commands alternately, in `runs` times three rounds."""
    python = str(_environment())
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        yield from _of_tests(python, folder, runs)
        yield from _of_commands(python, folder, runs)


def _environment() -> Path:
    """Return an interpreter with pytest, this project and the packages it is compared with."""
    version = metadata.version("pytest")
    needs = [f"pytest=={version}", "pytest-recording", "pydantic-ai-slim", "-e", str(ROOT)]
    return ensure(TOOLS / "start", "pytest", version, needs)


def _of_tests(python: str, folder: Path, runs: int) -> Iterator[Entry]:
    tests = {name: body for name, (body, _) in _OURS.items()} | _THEIRS
    tests |= {_PLAIN: "def test_it(): pass\n"}
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    commands: dict[str, list[str]] = {}
    for number, (name, body) in enumerate(tests.items()):
        (folder / f"test_{number}.py").write_text(body, encoding="utf-8")
        commands[name] = [*pytest, f"test_{number}.py"]
    commands["plugin off"] = [*commands[_PLAIN], "-p", "no:statek"]
    rounds = _rounds(commands, folder, runs)
    over = {name: median(each[name] - each[_PLAIN] for each in rounds) for name in commands}
    yield _seconds("the plugin installed and unused, per pytest run", -over["plugin off"], 0.005)
    for name, (_, goal) in _OURS.items():
        yield _seconds(f"one test with {name}, over {_PLAIN}", over[name], goal)
    for peer in _THEIRS:
        for name in ("statek_llm", "statek_agent"):
            yield time_entry(
                name=f"one test with {name}, over {_PLAIN}",
                peer=peer,
                unit="s",
                ours=over[name],
                theirs=over[peer],
                goal=None,
            )


def _of_commands(python: str, folder: Path, runs: int) -> Iterator[Entry]:
    statek_sim = [str(Path(python).with_name("statek-sim"))]
    processor([*statek_sim, "init", "mine"], folder)
    rounds = _rounds(
        {command: [*statek_sim, *command.split()] for command in _COMMANDS}, folder / "mine", runs
    )
    for command, goal in _COMMANDS.items():
        seconds = median(each[command] for each in rounds)
        yield _seconds(f"statek-sim {command}, on the starter project", seconds, goal)


def _seconds(name: str, seconds: float, goal: float) -> Entry:
    return Entry(name=name, unit="s", ours=seconds, goal=goal)


def _rounds(commands: Mapping[str, Sequence[str]], folder: Path, runs: int) -> list[dict[str, float]]:
    """Return each command's CPU seconds by round, after a warm-up round."""
    take_turns(commands, folder, first=0)
    return [take_turns(commands, folder, first=number) for number in range(runs * ROUNDS_PER_RUN)]
