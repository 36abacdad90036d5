"""Forge's side of `bench.agent`: the same work in its loop, with a client that answers immediately, without HTTP.

`python -m bench.agent_forge TURNS` prints the CPU seconds for a run with this many requests. It runs in Forge's
environment (`bench.agent_forge_setup`).
"""

from __future__ import annotations

import asyncio
import sys
from statistics import median
from time import process_time
from typing import Any

from forge import ContextManager, NoCompact, ToolCall, ToolDef, ToolSpec, Workflow, WorkflowRunner

from bench.agent_ours import price_of, runs_of


class Scripted:
    """A client that calls the tool with a new argument each time, and finally the terminal tool."""

    api_format = "openai"
    model = "scripted"

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._asked = 0

    async def send(self, messages: object, tools: object = None, **rest: object) -> list[ToolCall]:
        """Answer a request."""
        self._asked += 1
        if self._asked < self._turns:
            return [ToolCall(tool="price_of", args={"item": "apple", "number": self._asked})]
        return [ToolCall(tool="answer", args={"text": "done"})]


def answer(text: str) -> str:
    """Give the final answer."""
    return text


def turns(count: int) -> float:
    """Run one workflow for `count` requests; return the seconds it took, without setup."""
    text: dict[str, Any] = {"type": "string", "description": "Text."}
    price = {
        "type": "object",
        "properties": {"item": text, "number": {"type": "integer", "description": "How many."}},
        "required": ["item", "number"],
    }
    schema = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    tools = {
        "price_of": ToolDef(ToolSpec.from_json_schema("price_of", "Return the price.", price), price_of),
        "answer": ToolDef(ToolSpec.from_json_schema("answer", "Answer.", schema), answer),
    }
    workflow = Workflow("prices", "Prices.", tools, [], "answer", "You look prices up.")
    client: Any = Scripted(count)
    runner = WorkflowRunner(client, ContextManager(NoCompact(), None), max_iterations=count)
    started = process_time()
    if asyncio.run(runner.run(workflow, "Look the prices up.")) != "done":
        raise SystemExit("the run did not end with its answer")
    return process_time() - started


if __name__ == "__main__":
    COUNT = int(sys.argv[1])
    turns(COUNT)
    print(median(turns(COUNT) for _ in range(runs_of(COUNT))))
