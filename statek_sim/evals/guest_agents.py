"""Agents of pydantic-ai on evals, with their own model or with a simulated one behind its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statek_sim.evals.players import Agent, Assignment, coroutine_of
from statek_sim.guests import pydantic_ai
from statek_sim.guests.guest import Guest
from statek_sim.providers.script import ReplyFunction, computed


def tools_for_pydantic_ai(job: Assignment) -> list[Any]:
    """Return the tools of an assignment for an `Agent` of pydantic-ai."""
    return pydantic_ai.tools_of(
        (tool.name, tool.description, tool.parameters, coroutine_of(tool)) for tool in job.tools.values()
    )


def model_for_pydantic_ai(replies: ReplyFunction) -> Any:
    """Return a model for an `Agent` of pydantic-ai: its own OpenAI client, answered by a function of requests."""
    return pydantic_ai.scripted_model(Guest([computed(replies).forever()]))


def from_pydantic_ai(make: Callable[[Assignment, list[Any]], Any]) -> Agent:
    """Return an agent that runs the pydantic-ai `Agent` returned by `make` for an assignment and its tools."""

    async def work(job: Assignment) -> str:
        done = await make(job, tools_for_pydantic_ai(job)).run(job.task)
        answer = done.output
        return answer if isinstance(answer, str) else str(answer)

    return work
