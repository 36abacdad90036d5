"""Measures the gate's cost: four presets on a hundred scenarios.

`python -m bench.gate gate SIZE` prints one line of JSON, a `Measurement` on SIZE scenarios; the clock starts after the
imports.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.entry import Entry
from bench.sides import Side
from bench.workload import Measurement
from statek_sim.gate.gate import gate_plan, judge_presets, workloads
from statek_sim.harness.preset import BUILT_IN
from statek_sim.scenario.schema import Scenario

SCENARIOS: Final = 100
MOST_SECONDS: Final = 5
"""Goal: seconds that four presets on a hundred scenarios may take."""


def gate(size: int) -> Measurement:
    """Check the built-in presets on `size` scenarios: the built-in workloads, copied until there are enough."""
    started = perf_counter()
    plan = gate_plan(BUILT_IN, policy=None, folder=Path())
    result = judge_presets(plan, copies(workloads(()), size), profile="docs")
    if not result.passed:
        raise SystemExit("\n".join(verdict.reason for verdict in result.failed))
    return _measured("gate", size, perf_counter() - started, len(result.verdicts))


def copies(scenarios: Sequence[Scenario], size: int) -> list[Scenario]:
    """Return `size` scenarios with unique names."""
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
    """Measure the gate."""
    side = Side(own.python, "bench.gate")
    yield Entry(
        name=f"gate: 4 presets on {SCENARIOS} scenarios",
        unit="s",
        ours=median(side.measure("gate", SCENARIOS).seconds for _ in range(runs)),
        goal=MOST_SECONDS,
    )


def main() -> None:
    """Run one workload and print its measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("workload", choices=("gate",))
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    print(gate(arguments.size).to_line())


if __name__ == "__main__":
    main()
