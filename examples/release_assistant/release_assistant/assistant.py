"""The agent: its tools, their order, and required approvals."""

from __future__ import annotations

from typing import Any

from release_assistant.repository import Repository
from statek_sim.agents import Approvals, Ask, Parts, Registry, Step, StepPlan, ToolSource
from statek_sim.context import ContextSettings
from statek_sim.protection import BreakerGate, BreakerSettings, loop_watcher, rescued

PROMPT = (
    "You make releases. Read what was merged, run the tests, write the notes, publish. Never skip a step."
)

STEPS = StepPlan(
    steps=(
        Step(tool="run_tests"),
        Step(tool="write_notes"),
        Step(tool="publish", after=("run_tests", "write_notes")),
    )
)
"""The tracker's tools, which may be called at any time."""

HOUR = 3600.0


def assistant(repository: Repository, *sources: ToolSource) -> dict[str, Any]:
    """Return the `AgentHarness` settings for one release; `sources` are MCP servers."""
    registry = Registry([repository.run_tests, repository.write_notes, repository.publish])
    for source in sources:
        registry.follow(source)
    approvals = Approvals({"publish": Ask(text="Publish {version}?", seconds=HOUR)})
    return {
        "tools": registry,
        "steps": STEPS,
        "prompt": PROMPT,
        "context": ContextSettings(budget=1400, reserve=300, keep=1),
        "parts": Parts(
            reader=rescued,
            watchers=[loop_watcher()],
            gates=[BreakerGate(BreakerSettings(failures=3, cooldown=60.0)), approvals],
        ),
    }
