"""Evals: a run's cost compared with Forge's runner, and the duration of the suite in all arms."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from bench.agent_forge_setup import FORGE, forge_python
from bench.entry import Entry, time_entry
from bench.sides import ROOT

RUNS: Final = 200
SEEDS: Final = 50
REACH: Final = 3.0
"""Goal: how many times faster a run is than in Forge's runner."""
MOST_SECONDS: Final = 60.0
"""Goal: seconds that 30 evals in 8 arms with 50 seeds may take on two cores."""


def evals_entries(runs: int) -> Iterator[Entry]:
    """Yield the measurements; the suite runs only once, because it takes as long as all others together."""
    python = forge_python()
    ours = median(_measured("evals_ours", "shape", RUNS, python=python) for _ in range(runs))
    for how, goal in (("wire", REACH), ("objects", None)):
        theirs = median(_measured("evals_forge", how, RUNS, python=python) for _ in range(runs))
        yield time_entry(
            name="an eval run of five calls, with a harness and a simulated model",
            peer=f"Forge {FORGE}, its client reading {how}"
            if how == "wire"
            else f"Forge {FORGE}, given objects",
            unit="ms/run",
            ours=1e3 * ours / RUNS,
            theirs=1e3 * theirs / RUNS,
            goal=goal,
        )
    yield Entry(
        name="30 evals in 8 arms with 50 seeds (12,000 runs), two processes",
        unit="s",
        ours=_measured("evals_ours", "suite", SEEDS),
        goal=MOST_SECONDS,
    )


def _measured(module: str, *arguments: str | int, python: str | Path = sys.executable) -> float:
    command = [str(python), "-W", "ignore", "-m", f"bench.{module}", *map(str, arguments)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(finished.stdout)
