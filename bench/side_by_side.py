"""Runs a scenario file on both runtimes and compares the cost of each scenario with the real package.

Unlike the other comparisons, this one measures what users of `--backend installed` wait for: on the other side, a
separate process per scenario, which opens the store and passes us every request. The entry per further turn excludes
what is the same for short and long jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.entry import Entry, time_entry
from bench.sides import BenchError
from bench.versus import PEER_NAME, unsteady_times
from statek_sim.backends.installed.peer import Peer, installed_record, profile_of_peer
from statek_sim.backends.run import run_scenario
from statek_sim.compare.matrix import compared
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario

NAME: Final = "scenarios"
SCENARIOS: Final = Path(__file__).parent / "scenarios.yaml"
SHORT, LONG = "job-of-10-turns", "job-of-200-turns"
"""The jobs used to measure the cost of a further turn."""
FURTHER: Final = 190

Seconds = tuple[float, float]
"""Ours and theirs."""


def side_by_side(python: Path, runs: int, warn: Callable[[str], None]) -> Iterator[Entry]:
    """Yield an entry per scenario and one per further turn; raises BenchError if the sides did different work.

    Calls `warn` if the machine was too busy for the ratios to be quoted.
    """
    scenarios = load_or_fail([SCENARIOS])
    with Peer(str(python)) as peer:
        timed = {scenario.id: _timed(peer, scenario, runs, warn) for scenario in scenarios}
    for scenario in scenarios:
        yield _entry(
            f"scenario: {scenario.title[0].lower()}{scenario.title[1:]}", "ms", timed[scenario.id], 1e3
        )
    (short, their_short), (long, their_long) = timed[SHORT], timed[LONG]
    per_turn = (long - short) / FURTHER, (their_long - their_short) / FURTHER
    yield _entry("the same, per further turn from 10 to 200", "ms", per_turn, 1e3)


def _entry(name: str, unit: str, seconds: Seconds, scale: float) -> Entry:
    return time_entry(
        name=name, peer=PEER_NAME, unit=unit, ours=scale * seconds[0], theirs=scale * seconds[1], goal=None
    )


def _timed(peer: Peer, scenario: Scenario, runs: int, warn: Callable[[str], None]) -> Seconds:
    """Return both sides' medians, alternating which goes first, after one checked run each."""
    profile = profile_of_peer(peer)
    theirs = installed_record(scenario, profile, peer.run(scenario, profile), seed=scenario.seed)
    found = compared(run_scenario(scenario, profile), theirs)
    if found:
        raise BenchError(f"{scenario.id}: the two sides did not do the same: {found[0].field}")
    pairs = []
    for number in range(runs):
        sides: list[Callable[[], object]] = [
            lambda: run_scenario(scenario, profile),
            lambda: peer.run(scenario, profile),
        ]
        first = number % 2
        seconds = {place: _seconds(sides[place]) for place in (first, 1 - first)}
        pairs.append((seconds[0], seconds[1]))
    doubt = unsteady_times(pairs)
    if doubt is not None:
        warn(f"  do not quote {scenario.id}: {doubt}")
    return median(ours for ours, _ in pairs), median(theirs for _, theirs in pairs)


def _seconds(run: Callable[[], object]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started
