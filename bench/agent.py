"""The agent engine: the cost of a tool-calling turn, alone and compared with pydantic-ai's FunctionModel and Forge."""

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

TURNS: Final = 2_000
LONG: Final = 5_000
SHORT: Final = 60
"""Requests per run for the pydantic-ai comparison, where a request's cost grows with earlier requests."""

REACH: Final = 20.0
"""Goal: how many times more requests per second than FunctionModel."""

FORGES: Final = 500
"""Iterations in a long run of Forge's loop, where iterations cost more as the history grows."""

FORGE_REACH: Final = 2.0
"""Goal: how many times more iterations per second than Forge."""

FLAT: Final = 0.8
MOST_FOR_TOOLS: Final = 1_000.0
"""Goal: microseconds that a thousand registered tools may add to a turn."""

MOST_FOR_SPANS: Final = 20.0
"""Goal: percentage of a scripted-model run that creating its spans may take."""


def agent_entries(runs: int) -> Iterator[Entry]:
    """Yield the agent engine's measurements; times are CPU time."""
    short = median(_measured("agent_ours", "turns", SHORT) for _ in range(runs))
    theirs = median(_measured("agent_pydantic", SHORT) for _ in range(runs))
    yield time_entry(
        name="a request of a tool-calling agent, metered",
        peer="pydantic-ai FunctionModel",
        unit="µs/request",
        ours=1e6 * short / SHORT,
        theirs=1e6 * theirs / SHORT,
        goal=REACH,
    )
    yield from _beside_forge(runs)
    yield time_entry(
        name="turns 4,001-5,000 of an agent against 1-1,000, medians of 100",
        peer="first fifth of the same run",
        unit="of it",
        ours=median(_measured("agent_ours", "fifths", LONG) for _ in range(runs)),
        theirs=1.0,
        goal=FLAT,
    )
    few = median(_measured("agent_ours", "turns", TURNS) for _ in range(runs))
    many = median(_measured("agent_ours", "many_tools", TURNS) for _ in range(runs))
    yield Entry(
        name="what 1,000 registered tools add to a turn",
        unit="µs/turn",
        ours=max(0.0, 1e6 * (many - few) / TURNS),
        goal=MOST_FOR_TOOLS,
    )
    yield Entry(
        name="the spans of an agent's run",
        unit="% of the run",
        ours=median(_measured("agent_ours", "spans", SHORT) for _ in range(runs)),
        goal=MOST_FOR_SPANS,
    )


def _beside_forge(runs: int) -> Iterator[Entry]:
    """Yield both loops on the same work, with models that answer immediately, in the interpreter that Forge needs."""
    python = forge_python()
    for count in (SHORT, FORGES):
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(_measured("agent_ours", "bodies", count, python=python))
            theirs.append(_measured("agent_forge", count, python=python))
        yield time_entry(
            name=f"an iteration of an agent's loop, metered, {count} in a run",
            peer=f"Forge {FORGE}",
            unit="µs/iteration",
            ours=1e6 * median(ours) / count,
            theirs=1e6 * median(theirs) / count,
            goal=FORGE_REACH,
        )


def _measured(module: str, *arguments: str | int, python: str | Path = sys.executable) -> float:
    command = [str(python), "-W", "ignore", "-m", f"bench.{module}", *map(str, arguments)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(finished.stdout)
