"""Measurements without a peer: whether costs stay flat, memory small, and overhead low."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from bench.server_stress import stress_entries
from bench.sides import ROOT, Side, take_turns
from bench.slots import slot_entries
from bench.start import start_entries

FLAT: Final = 0.8
"""The minimum ratio that counts as equal cost; the tolerance is for a busy machine."""

_ON_ONE_CORE: Final = (
    "import os; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1]); "
    "from statek_sim.cli.app import main; main()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solo:
    """A measurement on our side only."""

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
        unit="s",
        ours=median(measurement.seconds for measurement in measured),
        goal=2,
    )


def _watchdog(ours: Side, runs: int) -> Iterator[Entry]:
    """Compare CPU time on one core; with several, the suites finish sooner because there are as many workers."""
    on = [str(ours.python), "-c", _ON_ONE_CORE, "run", "--quiet"]
    commands = {"on": on, "off": [*on, "--watchdog", "off"]}
    rounds = [take_turns(commands, ROOT, first=n) for n in range(runs)]
    yield time_entry(
        name="processor time of `run` on one core, with the watchdog",
        peer="--watchdog off",
        unit="s",
        ours=median(seconds["on"] for seconds in rounds),
        theirs=median(seconds["off"] for seconds in rounds),
        goal=0.95,
    )


SOLOS: Final = (
    Solo(name="turn_cost", entries=_flat_turns),
    Solo(name="waiting", entries=_waiting),
    Solo(name="suites", entries=_suites),
    Solo(name="watchdog", entries=_watchdog),
    Solo(name="start", entries=lambda ours, runs: start_entries(runs)),
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
"""Everything measured only on our side."""
