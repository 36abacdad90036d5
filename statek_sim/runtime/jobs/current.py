"""Which job is executing right now, and which agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Token
from typing import Any

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import bound_context, current, reset_context, set_context

reset_job = reset_context


def set_job(job: Job) -> Token[dict[str, Any] | None]:
    """Make `job` the current one, until `reset_job` gets what this returns."""
    return set_context({"job": job, "agent": job.job_def.agent})


@contextmanager
def job_context(job: Job) -> Iterator[None]:
    """Make `job` the current job inside the block."""
    with bound_context({"job": job, "agent": job.job_def.agent}):
        yield


def get_current_job() -> Job | None:
    """Return the job that is executing, or None outside of jobs."""
    job: Job | None = current("job")
    return job


def get_current_agent() -> Agent | None:
    """Return the agent of the executing job, or None outside of jobs."""
    agent: Agent | None = current("agent")
    return agent
