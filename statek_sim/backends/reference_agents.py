"""The agents of a scenario on the reference runtime, with the tools of the built-in world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statek_sim.backends.setup import tool_named
from statek_sim.backends.written_agents import metadata_of, style_of_all, style_of_definitions
from statek_sim.harness.current import get_llm_harness
from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import Agent, DialogAgent, RecurringReminder
from statek_sim.runtime.execution.builtin_tools import get_all, get_any
from statek_sim.runtime.jobs import subtask as subtasks
from statek_sim.runtime.jobs.current import get_current_job
from statek_sim.runtime.state import error_handlers, futures
from statek_sim.runtime.stored.containers import kept
from statek_sim.runtime.tools import declaration as tools
from statek_sim.scenario.schema import AgentText, Scenario
from statek_sim.world.tool_api import ToolApi
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import World


def tool_api(agents: Mapping[str, Agent]) -> ToolApi:
    """Return what the built-in tools need of the reference runtime; `agents` are those they may delegate to."""
    return ToolApi(
        tool=tools.tool,
        subtask=subtasks.subtask,
        error_handler=error_handlers.error_handler,
        temporal=futures.temporal,
        future=futures.FutureResult,
        future_error=futures.FutureError,
        get_current_job=get_current_job,
        create_new_job=task.create_new_job,
        complete_sub_task=subtasks.complete_sub_task,
        delegate_task=task.delegate_task,
        any_future=futures.get_any_future,
        all_future=futures.get_all_future,
        get_llm_harness=get_llm_harness,
        agents=agents,
        kept=_as_attribute,
    )


def _as_attribute(value: Any) -> Any:
    """Return what an attribute of a stored object makes of a value of the current job."""
    job = get_current_job()
    return value if job is None or not job.py_env.stores else kept(value).value


def agents_of(scenario: Scenario, world: World) -> dict[str, Agent]:
    """Return the agents by role; their tools work on `world` and may delegate to each of them."""
    agents: dict[str, Agent] = {}
    builtin = WorldTools(world, tool_api(agents), extra=(get_any, get_all))
    of_all = style_of_all(scenario)
    for role, text in scenario.agents.items():
        own = [tool_named(scenario, name, builtin) for name in text.tools]
        agents[role] = _agent(role, text, own, of_all)
    return agents


def _agent(role: str, text: AgentText, own: list[Callable[..., Any]], of_all: str | None) -> Agent:
    if not text.dialog:
        return Agent(
            role,
            text.prompt,
            tools=own,
            metadata=metadata_of(text),
            warmup=text.warmup,
            chat_style=style_of_definitions(text, of_all),
        )
    reminder = text.reminder
    return DialogAgent(
        _deliver,
        role,
        text.prompt,
        tools=own,
        add_answer_tool=text.answer_tool,
        reminder=None if reminder is None else RecurringReminder(reminder.text, reminder.min_dialog_len),
        metadata=metadata_of(text),
        warmup=text.warmup,
    )


def _deliver(body: str, media: str | None = None) -> None:
    """The user of every dialog agent: reads and stays silent. What was sent is in the trace."""
