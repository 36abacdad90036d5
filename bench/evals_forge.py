"""Forge's side of `bench.evals`: runs shaped like one of its scenarios, with a model that makes no mistakes.

`python -m bench.evals_forge HOW RUNS` prints CPU seconds. Each run has its own workflow and tools, like an eval that
checks its world's state; all runs share a client. With the HOW `wire`, the model's answers are HTTP body bytes read by
Forge's own client, as on our side; with `objects`, our client gives Forge its own objects. It runs in Forge's
environment (`bench.agent_forge_setup`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from time import process_time
from typing import Any

import httpx
from forge import ContextManager, NoCompact, ToolCall, ToolDef, ToolSpec, Workflow, WorkflowRunner
from forge.clients.openai_compat import OpenAICompatClient

CALLS = 5
"""Calls in an ideal run of `data_gap_recovery`, including the terminal one."""


def after(name: str, value: str) -> str:
    """Return a step's result for a value."""
    return (
        f"value {int(hashlib.blake2b(f'{name}/{value}'.encode(), digest_size=4).hexdigest(), 16) % 10**8:08d}"
    )


class Script:
    """A model that passes each step's result to the next step and submits the last value."""

    def __init__(self, word: str) -> None:
        self._value = word
        self._asked = 0

    def next(self) -> tuple[str, str]:
        """Return the next tool to call and its argument."""
        self._asked += 1
        value = self._value
        if self._asked == CALLS:
            return "submit", value
        name = f"step_{self._asked}"
        self._value = after(name, value)
        return name, value


class Objects:
    """A client that gives Forge its own objects."""

    api_format = "openai"
    model = "scripted"

    def __init__(self) -> None:
        self.script = Script("")

    async def send(self, messages: object, tools: object = None, **rest: object) -> list[ToolCall]:
        """Answer a request."""
        name, value = self.script.next()
        return [ToolCall(tool=name, args={"value": value})]


class Wired(OpenAICompatClient):  # type: ignore[misc]  # Forge has no types here
    """Forge's own client, whose requests are answered in this process with body bytes."""

    def __init__(self) -> None:
        super().__init__("scripted", "http://scripted.invalid/v1")
        self.script = Script("")
        own: Any = self
        own._http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        name, value = self.script.next()
        function = {"name": name, "arguments": json.dumps({"value": value})}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return httpx.Response(200, content=json.dumps({"choices": [choice]}).encode())


def one_run(seed: int, client: Any) -> None:
    """Run one workflow with its own tools and check how it ends."""
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
            ToolSpec.from_json_schema(name, f"Do {name}.", schema),
            lambda value, name=name: after(name, value),
        )
        for name in names
    }
    tools["submit"] = ToolDef(ToolSpec.from_json_schema("submit", "Submit.", schema), submit)
    workflow = Workflow("steps", "Steps.", tools, names, "submit", "You take steps.")
    client.script = Script(f"word-{seed}")
    runner = WorkflowRunner(client, ContextManager(NoCompact(), None), max_iterations=15)
    asyncio.run(runner.run(workflow, f"Begin with 'word-{seed}' and submit the last value."))
    if len(submitted) != 1:
        raise SystemExit(f"run {seed} did not submit")


def main(how: str, runs: int) -> float:
    """Return the CPU seconds that this many runs take."""
    client = Wired() if how == "wire" else Objects()
    started = process_time()
    for seed in range(runs):
        one_run(seed, client)
    return process_time() - started


if __name__ == "__main__":
    main(sys.argv[1], 5)
    print(main(sys.argv[1], int(sys.argv[2])))
