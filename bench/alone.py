"""What only our side can be asked: does it stay flat, stay small, and stay out of the way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata as installed
from importlib.metadata import entry_points
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Final

from bench import cassettes, gate, metering
from bench.agent import agent_entries
from bench.checkpoints import checkpoint_entries
from bench.entry import Entry, time_entry
from bench.evals import evals_entries
from bench.guards import guard_entries
from bench.rescue import rescue_entries
from bench.server import server_entries
from bench.server_setup import TOOLS
from bench.server_stress import stress_entries
from bench.setup import ensure
from bench.sides import ROOT, BenchError, Side, run_clean
from bench.slots import slot_entries

NO_PEER: Final = "-"
FLAT: Final = 0.8
"""Least ratio that counts as the same cost; the rest is what a busy machine adds."""

_ON_ONE_CORE: Final = (
    "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]); "
    "from statek_sim.cli.main import main; main()"
)
_NOTHING_COLLECTED: Final = 5
"""How pytest exits without a test."""

PLUGIN_ROUNDS_PER_RUN: Final = 12
"""Rounds of pytest processes per run: those of one round differ by more than what is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solo:
    """Something measured on our side only."""

    name: str
    entries: Callable[[Side, int], Iterator[Entry]]


def _flat_turns(ours: Side, runs: int) -> Iterator[Entry]:
    measured = [ours.measure("turn_cost", 5000).extra for _ in range(runs)]
    yield time_entry(
        name="cost of a turn, turns 4,001-5,000 against 1-1,000",
        peer="first fifth of the same job",
        unit="µs/turn",
        ours=1e6 * median(fifths["last"] for fifths in measured),
        theirs=1e6 * median(fifths["first"] for fifths in measured),
        goal=FLAT,
    )


def _waiting(ours: Side, runs: int) -> Iterator[Entry]:
    few, many = [], []
    for _ in range(runs):
        few.append(ours.measure("waiting", 10).extra)
        many.append(ours.measure("waiting", 100_000).extra)
    yield Entry(
        name="memory of a suspended job, 100,000 waiting",
        peer=NO_PEER,
        unit="KiB",
        ours=median(extra["bytes_per_job"] for extra in many) / 1024,
        goal=10,
    )
    yield time_entry(
        name="wake one among 100,000 waiting jobs against one among 10",
        peer="10 waiting jobs",
        unit="µs",
        ours=1e6 * median(extra["wake"] for extra in many),
        theirs=1e6 * median(extra["wake"] for extra in few),
        goal=FLAT,
    )


def _suites(ours: Side, runs: int) -> Iterator[Entry]:
    side = Side(ours.python, "bench.suites")
    measured = [side.measure() for _ in range(runs)]
    scenarios, played = measured[0].size, measured[0].extra["runs"]
    yield Entry(
        name=f"built-in suites after start-up: {scenarios} scenarios, {played:.0f} runs",
        peer=NO_PEER,
        unit="s",
        ours=median(measurement.seconds for measurement in measured),
        goal=2,
    )


def _watchdog(ours: Side, runs: int) -> Iterator[Entry]:
    """Compare processor time on one core: on several the suites end sooner, since there are as many workers."""
    on = [str(ours.python), "-c", _ON_ONE_CORE, "run", "--quiet"]
    commands = {"on": on, "off": [*on, "--watchdog", "off"]}
    rounds = [_take_turns(commands, ROOT, first=n, expected=0) for n in range(runs)]
    yield time_entry(
        name="processor time of `run` on one core, with the watchdog",
        peer="--watchdog off",
        unit="s",
        ours=median(seconds["on"] for seconds in rounds),
        theirs=median(seconds["off"] for seconds in rounds),
        goal=0.95,
    )


def _plugin_off(ours: Side, runs: int) -> Iterator[Entry]:
    if not entry_points(group="pytest11", name="statek"):
        raise BenchError("the plugin is not installed here; run: python -m pip install -e .")
    bare = [
        str(ours.python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_empty.py",
        "-p",
        "no:statek",
    ]
    commands = {"with": bare[:-2], "without": bare, "without again": bare}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        (directory / "test_empty.py").touch()
        _take_turns(commands, directory, first=0)
        rounds = [_take_turns(commands, directory, first=n) for n in range(runs * PLUGIN_ROUNDS_PER_RUN)]
    yield Entry(
        name="plugin installed but off, per pytest run",
        peer="noise: the same without it, twice",
        unit="ms",
        ours=1e3 * median(seconds["with"] - seconds["without"] for seconds in rounds),
        theirs=1e3 * median(seconds["without again"] - seconds["without"] for seconds in rounds),
        goal=5,
    )


def _startup(ours: Side, runs: int) -> Iterator[Entry]:
    """Compare a whole pytest run with all that an installation of ours brings with one that has pytest alone."""
    version = installed.version("pytest")
    alone = ensure(TOOLS / "pytest-alone", "pytest", version, [f"pytest=={version}"])
    whole = ensure(TOOLS / "pytest-statek", "pytest", version, [f"pytest=={version}", "-e", str(ROOT)])
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_empty.py"]
    commands = {"whole": [str(whole), *arguments], "alone": [str(alone), *arguments]}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        (directory / "test_empty.py").touch()
        _take_turns(commands, directory, first=0)
        rounds = [_take_turns(commands, directory, first=n) for n in range(runs * PLUGIN_ROUNDS_PER_RUN)]
    yield Entry(
        name="a whole pytest run with everything installed, added to pytest alone",
        peer=NO_PEER,
        unit="ms",
        ours=1e3 * median(seconds["whole"] - seconds["alone"] for seconds in rounds),
        goal=50,
    )


def _take_turns(
    commands: Mapping[str, list[str]], directory: Path, *, first: int, expected: int = _NOTHING_COLLECTED
) -> dict[str, float]:
    """Run every command once, starting with number `first`; return the processor seconds of each."""
    names = list(commands)
    start = first % len(names)
    return {name: _processor(commands[name], directory, expected) for name in names[start:] + names[:start]}


def _processor(command: list[str], directory: Path, expected: int) -> float:
    """Return the processor seconds of a run: what else the machine does takes longer than what is measured here."""
    before = _seconds_of_children()
    finished = run_clean(command, directory)
    seconds = _seconds_of_children() - before
    if finished.returncode != expected:
        raise BenchError(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return seconds


def _seconds_of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


SOLOS: Final = (
    Solo(name="turn_cost", entries=_flat_turns),
    Solo(name="waiting", entries=_waiting),
    Solo(name="suites", entries=_suites),
    Solo(name="watchdog", entries=_watchdog),
    Solo(name="plugin", entries=_plugin_off),
    Solo(name="startup", entries=_startup),
    Solo(name="cassettes", entries=cassettes.entries),
    Solo(name="server", entries=server_entries),
    Solo(name="stress", entries=stress_entries),
    Solo(name="metering", entries=metering.entries),
    Solo(name="gate", entries=gate.entries),
    Solo(name="agent", entries=lambda ours, runs: agent_entries(runs)),
    Solo(name="checkpoints", entries=lambda ours, runs: checkpoint_entries(runs)),
    Solo(name="rescue", entries=lambda ours, runs: rescue_entries(runs)),
    Solo(name="guards", entries=lambda ours, runs: guard_entries(runs)),
    Solo(name="slots", entries=lambda ours, runs: slot_entries(runs)),
    Solo(name="evals", entries=lambda ours, runs: evals_entries(runs)),
)
"""Everything measured on our side alone."""
