"""What the gate costs: four presets on a hundred scenarios, and a sweep on one core against two.

`python -m bench.gate WORKLOAD SIZE` prints one line of JSON, a `Measurement`; the clock starts after the imports. SIZE
is a number of scenarios for `gate`, and of processes for `sweep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.entry import Entry, time_entry
from bench.sides import Side
from bench.workload import Measurement
from statek_sim.executors.pool import cores
from statek_sim.executors.processes import ProcessExecutor
from statek_sim.gate.gate import gate_plan, judge_presets
from statek_sim.gate.gated_preset import gated_preset
from statek_sim.gate.sweep_ranges import read_axes
from statek_sim.gate.sweep_run import run_sweep
from statek_sim.gate.workloads import workloads
from statek_sim.harness.preset import BUILT_IN
from statek_sim.scenario.schema import Scenario

SCENARIOS: Final = 100
MOST_SECONDS: Final = 5
"""Seconds that four presets on a hundred scenarios may take."""

LEAST_GAIN: Final = 1.5
"""Least ratio of a sweep on one core to the same on two; starting processes is not shared out."""

SWEPT: Final = ("max_turns=3..30/1", "max_token_usage=5k..100k/5k")


def gate(size: int) -> Measurement:
    """Judge the built-in presets on `size` scenarios: the shipped workloads, copied until there are enough."""
    started = perf_counter()
    plan = gate_plan(BUILT_IN, policy=None, folder=Path())
    result = judge_presets(plan, copies(workloads(()), size), profile="docs")
    if not result.passed:
        raise SystemExit("\n".join(verdict.reason for verdict in result.failed))
    return _measured("gate", size, perf_counter() - started, len(result.verdicts))


def sweep(processes: int) -> Measurement:
    """Sweep a preset over two limits on so many processes; their start is part of it."""
    started = perf_counter()
    found = run_sweep(
        gated_preset("default"), workloads(()), "docs", read_axes(SWEPT), executor=ProcessExecutor(processes)
    )
    return _measured("sweep", processes, perf_counter() - started, len(found.cells))


def copies(scenarios: Sequence[Scenario], size: int) -> list[Scenario]:
    """Return `size` scenarios with names of their own."""
    return [
        scenario.model_copy(update={"id": scenario.id if n < len(scenarios) else f"{scenario.id}-{n}"})
        for n, scenario in enumerate(islice(cycle(scenarios), size))
    ]


def _measured(workload: str, size: int, seconds: float, steps: int) -> Measurement:
    return Measurement(
        workload=workload,
        size=size,
        seconds=seconds,
        jobs=0,
        steps=steps,
        bytes_sent=0,
        bytes_received=0,
        transcript=(),
        extra={},
    )


def entries(own: Side, runs: int) -> Iterator[Entry]:
    """Measure the gate and the sweep."""
    side = Side(own.python, "bench.gate")
    yield Entry(
        name=f"gate: 4 presets on {SCENARIOS} scenarios",
        peer="-",
        unit="s",
        ours=median(side.measure("gate", SCENARIOS).seconds for _ in range(runs)),
        goal=MOST_SECONDS,
    )
    if cores() < 2:
        return
    one_core, two_cores = [], []
    for _ in range(runs):
        one_core.append(side.measure("sweep", 1).seconds)
        two_cores.append(side.measure("sweep", 2).seconds)
    yield time_entry(
        name="sweep of 28 x 20 settings on two cores",
        peer="on one core",
        unit="s",
        ours=median(two_cores),
        theirs=median(one_core),
        goal=LEAST_GAIN,
    )


def main() -> None:
    """Run one workload and print its measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("workload", choices=("gate", "sweep"))
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    measure = {"gate": gate, "sweep": sweep}[arguments.workload]
    print(measure(arguments.size).to_line())


if __name__ == "__main__":
    main()
