"""The reference runtime in the hands of the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.warmup_source import parse_warmup
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, create_sub_task
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.scenario.schema import AgentText, JobText
from statek_sim.world.world import World


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
