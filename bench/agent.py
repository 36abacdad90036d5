"""Engine two: what a turn of the tool-calling agent costs, alone and beside pydantic-ai's FunctionModel."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Final

from bench.entry import Entry, time_entry
from bench.sides import ROOT

TURNS: Final = 2_000
LONG: Final = 5_000
SHORT: Final = 60
"""Requests of a run that pydantic-ai takes part in: what a request costs there grows with those before it."""

REACH: Final = 20.0
"""How many times more requests per second than FunctionModel."""

FLAT: Final = 0.8
MOST_FOR_TOOLS: Final = 1_000.0
"""Microseconds that a thousand registered tools may add to a turn."""


def agent_entries(runs: int) -> Iterator[Entry]:
    """Yield the measurements of engine two; times are the processes' own."""
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
    yield time_entry(
        name="turns 4,001-5,000 of an agent against 1-1,000",
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
        peer="-",
        unit="µs/turn",
        ours=max(0.0, 1e6 * (many - few) / TURNS),
        goal=MOST_FOR_TOOLS,
    )


def _measured(module: str, *arguments: str | int) -> float:
    command = [sys.executable, "-W", "ignore", "-m", f"bench.{module}", *map(str, arguments)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(finished.stdout)
