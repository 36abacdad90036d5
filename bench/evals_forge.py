"""Forge's side of `bench.evals`: runs of the shape of one of its scenarios, its model a client that answers at once.

`python -m bench.evals_forge RUNS` prints seconds of the process's own time. Each run has a workflow and tools of its
own, as an evaluation has that checks the state of its world. It runs in Forge's environment (`bench.agent_forge_setup`).
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from time import process_time
from typing import Any

from forge import ContextManager, NoCompact, ToolCall, ToolDef, ToolSpec, Workflow, WorkflowRunner

CALLS = 5
"""Calls of an ideal run of `data_gap_recovery`, the terminal one included."""


def after(name: str, value: str) -> str:
    """Return what a step makes of a value."""
    return f"value {int(hashlib.blake2b(f'{name}/{value}'.encode(), digest_size=4).hexdigest(), 16) % 10**8:08d}"


class Scripted:
    """A client that takes every step with what the one before gave, and submits the last value."""

    api_format = "openai"
    model = "scripted"

    def __init__(self, word: str) -> None:
        self._value = word
        self._asked = 0

    async def send(self, messages: object, tools: object = None, **rest: object) -> list[ToolCall]:
        """Answer a request."""
        self._asked += 1
        value = self._value
        if self._asked == CALLS:
            return [ToolCall(tool="submit", args={"value": value})]
        name = f"step_{self._asked}"
        self._value = after(name, value)
        return [ToolCall(tool=name, args={"value": value})]


def one_run(seed: int) -> None:
    """Run one workflow with tools of its own, and check its end."""
    submitted: list[str] = []

    def submit(value: str) -> str:
        submitted.append(value)
        return value

    schema = {
        "type": "object",
        "properties": {"value": {"type": "string", "description": "What the call before gave."}},
        "required": ["value"],
    }
    names = [f"step_{number}" for number in range(1, CALLS)]
    tools: dict[str, Any] = {
        name: ToolDef(
            ToolSpec.from_json_schema(name, f"Do {name}.", schema), lambda value, name=name: after(name, value)
        )
        for name in names
    }
    tools["submit"] = ToolDef(ToolSpec.from_json_schema("submit", "Submit.", schema), submit)
    workflow = Workflow("steps", "Steps.", tools, names, "submit", "You take steps.")
    client: Any = Scripted(f"word-{seed}")
    runner = WorkflowRunner(client, ContextManager(NoCompact(), None), max_iterations=15)
    asyncio.run(runner.run(workflow, f"Begin with 'word-{seed}' and submit the last value."))
    if len(submitted) != 1:
        raise SystemExit(f"run {seed} did not submit")


def main(runs: int) -> float:
    """Return the seconds that so many runs take."""
    started = process_time()
    for seed in range(runs):
        one_run(seed)
    return process_time() - started


if __name__ == "__main__":
    main(5)
    print(main(int(sys.argv[1])))
