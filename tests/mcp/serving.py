"""A server of ours as a process, for tests of connections, and what became of the process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statek_sim.agent.effects import ToolFunction, ToolOutcome
from statek_sim.mcp.client import Bounds, McpServerSpec, Stdio

ROOT = Path(__file__).resolve().parents[2]


async def wait(seconds: float) -> str:
    """Wait that long."""
    await asyncio.sleep(seconds)
    return "waited"


def search(q: str = "") -> str:
    """Search pages."""
    print("a line on standard output that is no message")
    return f"a page about {q}"


def edit() -> str:
    """Edit a page."""
    return "edited"


TOOLS: list[ToolFunction] = [search, edit, wait]


def made() -> list[ToolFunction]:
    """Return tools, for what takes a function that does."""
    return [search]


@dataclass
class Process:
    """A server over stdio and the file that its journal is written to."""

    journal: Path

    def spec(self, *faults: str, bounds: Bounds | None = None, options: Sequence[str] = ()) -> McpServerSpec:
        said = [part for fault in faults for part in ("--fault", fault)]
        command = [
            "-m",
            "statek_sim",
            "serve",
            "mcp",
            "tests.mcp.serving:TOOLS",
            "--journal",
            str(self.journal),
        ]
        at = Stdio(
            command=sys.executable,
            arguments=[*command, *said, *options],
            environment={"PYTHONPATH": str(ROOT)},
            folder=str(ROOT),
        )
        return McpServerSpec(name="wiki", at=at, bounds=bounds or Bounds(call=10.0))

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text("utf-8").splitlines()]

    @property
    def methods(self) -> list[str]:
        return [one["method"] for one in self.entries if one["what"] in ("request", "notification")]

    @property
    def pids(self) -> list[int]:
        return [int(one["detail"]) for one in self.entries if one["what"] == "started"]

    def gone(self) -> bool:
        """Return whether every process that was started is gone, at the latest in ten seconds."""
        assert self.pids, "none was started"
        latest = time.monotonic() + 10.0
        while any(map(alive, self.pids)) and time.monotonic() < latest:
            time.sleep(0.02)
        return not any(map(alive, self.pids))


def alive(pid: int) -> bool:
    """Return whether there is a process of this number that is no zombie."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[:1]
    except (ProcessLookupError, FileNotFoundError):
        return False


def told(outcome: ToolOutcome) -> tuple[str, str]:
    return outcome.status.value, outcome.text
