"""Runs the built-in suites, every scenario under all of its profiles: `python -m bench.suites`.

Prints one line of JSON, a `Measurement`; the clock starts after the imports and stops after the last comparison.
Garbage collection is configured as in the command line's workers.
"""

from __future__ import annotations

import gc
from time import perf_counter

from bench.workload import Measurement
from statek_sim.executors.limits import GARBAGE, begin_runs
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.result import Outcome, ScenarioResult
from statek_sim.suite.run import builtin_suites, run_suite


def main() -> None:
    """Load and run the suites and print the measurement; a failing scenario ends it with its name."""
    gc.set_threshold(*GARBAGE)
    started = perf_counter()
    scenarios = load_or_fail([builtin_suites()])
    begin_runs()
    results = list(run_suite(scenarios))
    seconds = perf_counter() - started
    failed = [_name(result) for result in results if result.outcome is not Outcome.PASSED]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(results)} scenario runs failed: {', '.join(failed)}")
    measured = Measurement(
        workload="suites",
        size=len({result.scenario.id for result in results}),
        seconds=seconds,
        jobs=0,
        steps=0,
        bytes_sent=0,
        bytes_received=0,
        transcript=(),
        extra={"runs": float(len(results))},
    )
    print(measured.to_line())


def _name(result: ScenarioResult) -> str:
    return f"{result.scenario.suite}/{result.scenario.id}[{result.profile}]"


if __name__ == "__main__":
    main()
