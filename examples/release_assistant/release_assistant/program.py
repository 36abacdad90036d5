"""Publishes a release: `python -m release_assistant.program`, with OPENAI_API_URL and OPENAI_API_KEY set."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from release_assistant.assistant import assistant
from release_assistant.repository import Repository
from statek_sim import AgentHarness
from statek_sim.agents import AgentRun, AsyncDriver, AsyncModel, LoopClock, PersonSaid, Question
from statek_sim.mcp_client import McpConnection, McpServerSpec, McpSource, Stdio
from statek_sim.providers import AsyncHttpLLM, access_from

TRACKER = McpServerSpec(
    name="tracker",
    at=Stdio(
        command=sys.executable,
        arguments=["-m", "statek_sim", "serve", "mcp", "release_assistant.tracker:TOOLS"],
        folder=str(Path(__file__).resolve().parents[1]),
    ),
)

Person = Callable[[Question], Awaitable[PersonSaid | str]]


async def release(repository: Repository, model: AsyncModel, person: Person) -> AgentRun:
    """Publish a release and return the run; the tracker's process ends with it."""
    async with McpConnection(TRACKER) as connection:
        clock = LoopClock()
        agent = AgentHarness(**assistant(repository, McpSource(connection)))
        run = agent.begin(f"Release what follows {repository.version}.", clock=clock)
        await AsyncDriver(model, clock=clock.now, person=person, threads=True).run(run)
        return run


async def at_the_terminal(question: Question) -> PersonSaid | str:
    """Ask the user at the terminal."""
    said = await asyncio.to_thread(input, f"{question.text} [yes, or why not] ")
    return "yes" if said.strip().lower() in ("y", "yes") else PersonSaid("refused", said)


async def main() -> None:
    """Run with the real model."""
    model = AsyncHttpLLM(partial(access_from, os.environ))
    try:
        run = await release(Repository(), model, at_the_terminal)
    finally:
        await model.aclose()
    print(run.answer or run.detail)


if __name__ == "__main__":
    asyncio.run(main())
