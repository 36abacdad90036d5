"""Agents built with four frameworks for `evals run --agent`, each as simple as its framework allows.

statek-sim evals run --agent statek_sim.evals:langgraph

Copy one and adapt it to your agent. Each function raises `BadInput` if its framework is not installed.
"""
# ruff: noqa: PLC0415  # only the requested framework is imported

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.evals.players import Agent as OwnAgent
from statek_sim.evals.players import Assignment, coroutine_of

MOST_TURNS: Final = 50
"""The maximum number of model answers per run, in every framework."""


async def langgraph(job: Assignment) -> str:
    """Run a LangChain 1 agent, which is a LangGraph graph."""
    with _installed("langchain langchain-openai"):
        from langchain.agents import create_agent
        from langchain_core.tools import StructuredTool
        from langchain_openai import ChatOpenAI
    tools = [
        StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.parameters),
            coroutine=coroutine_of(tool),
        )
        for tool in job.tools.values()
    ]
    agent = create_agent(ChatOpenAI(model=job.llm.model), tools, system_prompt=job.prompt or None)
    task = {"messages": [{"role": "user", "content": job.task}]}
    done = await agent.ainvoke(task, {"recursion_limit": 2 * MOST_TURNS})
    return str(done["messages"][-1].text)


async def openai_agents(job: Assignment) -> str:
    """Run an OpenAI Agents SDK agent over chat completions."""
    with _installed("openai-agents"):
        from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
        from openai import AsyncOpenAI
    set_tracing_disabled(disabled=True)

    def run(call: Callable[..., Any]) -> Callable[[Any, str], Any]:
        async def invoke(_context: Any, arguments: str) -> Any:
            return await call(**json.loads(arguments))

        return invoke

    tools = [
        FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=dict(tool.parameters),
            on_invoke_tool=run(coroutine_of(tool)),
            strict_json_schema=False,
        )
        for tool in job.tools.values()
    ]
    async with AsyncOpenAI() as client:
        model = OpenAIChatCompletionsModel(job.llm.model, client)
        agent = Agent(name="agent", instructions=job.prompt or None, model=model, tools=tools)
        return str((await Runner.run(agent, job.task, max_turns=MOST_TURNS)).final_output)


async def pydantic_ai(job: Assignment) -> str:
    """Run a pydantic-ai `Agent`."""
    with _installed("pydantic-ai-slim[openai]"):
        from pydantic_ai import Agent
        from pydantic_ai.usage import UsageLimits
    agent = Agent(f"openai-chat:{job.llm.model}", instructions=job.prompt, tools=tools_for_pydantic_ai(job))
    return str((await agent.run(job.task, usage_limits=UsageLimits(request_limit=MOST_TURNS))).output)


async def anthropic(job: Assignment) -> str:
    """Run an agent on Anthropic's SDK, with the tool loop from Anthropic's documentation."""
    with _installed("anthropic"):
        from anthropic import AsyncAnthropic
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
        for tool in job.tools.values()
    ]
    messages: list[Any] = [{"role": "user", "content": job.task}]
    fixed: Any = {"model": job.llm.model, "max_tokens": 4096, "system": job.prompt, "tools": tools}
    async with AsyncAnthropic() as client:
        for _ in range(MOST_TURNS):
            answer = await client.messages.create(messages=messages, **fixed)
            if answer.stop_reason != "tool_use":
                return "".join(block.text for block in answer.content if block.type == "text")
            results = [await _result(job, block) for block in answer.content if block.type == "tool_use"]
            messages += [
                {"role": "assistant", "content": answer.content},
                {"role": "user", "content": results},
            ]
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


async def _result(job: Assignment, block: Any) -> dict[str, str]:
    tool = job.tools.get(block.name)
    text = f"Error: no tool {block.name}" if tool is None else await coroutine_of(tool)(**block.input)
    return {"type": "tool_result", "tool_use_id": block.id, "content": text}


def tools_for_pydantic_ai(job: Assignment) -> list[Any]:
    """Return an assignment's tools for a pydantic-ai `Agent`."""
    from statek_sim.guests.pydantic_ai import tools_of

    return tools_of(
        (tool.name, tool.description, tool.parameters, coroutine_of(tool)) for tool in job.tools.values()
    )


def from_pydantic_ai(make: Callable[[Assignment, list[Any]], Any]) -> OwnAgent:
    """Return an agent that runs a pydantic-ai `Agent`; `make` creates it from an assignment and its tools."""

    async def work(job: Assignment) -> str:
        done = await make(job, tools_for_pydantic_ai(job)).run(job.task)
        answer = done.output
        return answer if isinstance(answer, str) else str(answer)

    return work


@contextmanager
def _installed(packages: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise BadInput(f"{error}; this agent needs: pip install {packages}") from None
