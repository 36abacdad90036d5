"""Measures the cost of sending work and of explorations, for planning large ones.

`python -m bench.executors` prints a Markdown table. It starts a Dask scheduler and two workers on loopback.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

from statek_sim.executors.by_name import executor_for
from statek_sim.executors.executor import Executor
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.result import Explored
from statek_sim.explore.workers import explore_all
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites

NOTHINGS = 4_000
"""The number of empty tasks."""

EVERY = 12
"""One in this many built-in scenarios is explored."""

_LISTENS = re.compile(r"Scheduler at: +tcp://(\S+)")
_STARTED = re.compile(r"Start worker at: +tcp://")


def main() -> None:
    """Measure and print."""
    scenarios = [scenario for scenario in load_or_fail([builtin_suites()]) if scenario.engine == "statek"][
        ::EVERY
    ]
    began = process_time()
    explored = [
        Explorer(scenario, scenario.profiles[0], bounds=Bounds(kinds=("crashes",))).explore()
        for scenario in scenarios
    ]
    cpu = process_time() - began
    runs = sum(exploration.runs for exploration in explored)
    print(f"{runs} runs of {len(scenarios)} scenarios: {runs / cpu:.0f} per CPU-second")
    print(
        f"a scenario as it is sent: {_bytes(scenarios):.0f} bytes; what comes back: {_bytes(explored):.0f} bytes"
    )
    print("\n| executor | 4,000 pieces of nothing, ms each | the same exploration, s |")
    print("|---|---:|---:|")
    with _cluster() as address:
        for words in ("serial", "processes:2", f"dask:{address}"):
            with executor_for(words) as executor:
                nothing = _nothing(executor)
                seconds = _exploring(executor, scenarios, explored)
            print(f"| `{words.partition(':')[0]}` | {nothing:.2f} | {seconds:.1f} |")


def _nothing(executor: Executor) -> float:
    began = perf_counter()
    assert sum(1 for _ in executor.map(abs, ((number,) for number in range(NOTHINGS)))) == NOTHINGS
    return 1000 * (perf_counter() - began) / NOTHINGS


def _exploring(executor: Executor, scenarios: list[Scenario], expected: list[Explored]) -> float:
    began = perf_counter()
    pairs = [(scenario, scenario.profiles[0]) for scenario in scenarios]
    assert list(explore_all(pairs, bounds=Bounds(kinds=("crashes",)), executor=executor)) == expected
    return perf_counter() - began


def _bytes(values: list[Scenario] | list[Explored]) -> float:
    return sum(len(pickle.dumps(value)) for value in values) / len(values)


@contextmanager
def _cluster() -> Iterator[str]:
    started: list[subprocess.Popen[str]] = []

    def start(pattern: re.Pattern[str], *words: str) -> str:
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        assert process.stdout is not None
        found = next(match for line in process.stdout if (match := pattern.search(line)))
        return found[1] if found.groups() else ""

    try:
        address = start(_LISTENS, "scheduler", "--port", "0")
        for _ in range(2):
            start(_STARTED, "worker", address, "--nthreads", "1", "--no-nanny")
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
