"""The reference runtime in the hands of the driver: its jobs, and its agents with the tools of the built-in world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statek_sim.backends.driver import metadata_of, style_of_all, style_of_definitions
from statek_sim.backends.setup import tool_named
from statek_sim.harness.current import get_llm_harness
from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import Agent, DialogAgent, RecurringReminder
from statek_sim.runtime.agents.warmup_source import parse_warmup
from statek_sim.runtime.execution.builtin_tools import get_all, get_any
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs import subtask as subtasks
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, create_sub_task
from statek_sim.runtime.state import error_handlers, futures
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.stored.containers import kept
from statek_sim.runtime.tools import declaration as tools
from statek_sim.scenario.schema import AgentText, JobText, Scenario
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import ToolApi, World


class ReferenceSide:
    """A runtime with its world and its agents by role."""

    def __init__(self, runtime: Runtime, world: World, agents: Mapping[str, Agent]) -> None:
        self._runtime = runtime
        self._agents = agents
        self.world = world

    @property
    def now(self) -> float:
        """The virtual second."""
        return self._runtime.clock.now()

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`."""
        self._runtime.at(when, action)

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Read the warmup of an agent, which is there: jobs read it anew."""
        parse_warmup(text.warmup, bind_assignments=self._runtime.profile.as_tool_binds_assignment)

    def add_loop(self, role: str) -> None:
        """Have the runtime start jobs of this agent for the items of the queue."""
        self._runtime.add_loop(self._agents[role], self.world.queue.ready)

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Job:
        """Create a job as an application does."""
        return self._runtime.create_job(
            self._agents[text.agent or next(iter(self._agents))],
            name=name,
            parent_job=None if text.parent is None else self._runtime.job(text.parent),
            warmup_code=text.warmup,
            shared_vars=shared,
        )

    def job(self, name: str) -> Job:
        """Return a job by its name."""
        return self._runtime.job(name)

    def make_subtask(self, job: Job, subtask_id: str) -> SubTaskHandler:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker; in a call by what unwinds the step."""
        if in_call:
            raise WorkerKilled(reason)
        self._runtime.crash_worker(reason)

    def restart(self) -> None:
        """Start a new worker."""
        self._runtime.restart_worker()


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
