"""Starting work from tools and application code: jobs, dialogs and delegated tasks (001; behaviour 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statek_sim.runtime.agents.agent import Agent, DialogAgent
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.dialogs.dialog import chat_responses
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.current import get_current_job
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.futures import FutureError, FutureResult, temporal
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.tools.declaration import tool


def create_new_job(
    agent: Agent,
    shared_vars: Mapping[str, object] | None = None,
    parent_job: Job | None = None,
    warmup_code: WarmupSource = None,
    locale: str | None = None,
    **job_params: Any,
) -> Job:
    """Create a READY job in the current runtime. Locals come from `shared_vars` only, not from the caller."""
    return current_runtime().create_job(
        agent,
        shared_vars=shared_vars,
        parent_job=parent_job,
        warmup_code=warmup_code,
        locale=locale,
        **job_params,
    )


def start_dialog(
    agent: DialogAgent,
    message: object,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, object] | None = None,
    locale: str | None = None,
    **job_params: Any,
) -> Job:
    """Create a dialog job with its first user message."""
    job = create_new_job(agent, shared_vars, parent_job, warmup_code, locale, **job_params)
    job.push_user_message(message)
    return job


def submit_new_job(
    agent: Agent,
    shared_vars: Mapping[str, object] | None = None,
    locale: str | None = None,
    **job_params: Any,
) -> Job:
    """Create a job from application code."""
    return create_new_job(agent, shared_vars, locale=locale, **job_params)


def submit_new_jobs_batch(
    agent: Agent, shared_vars_batch: Sequence[Mapping[str, object] | None], **job_params: Any
) -> list[Job]:
    """Create one job per entry of `shared_vars_batch`."""
    return [submit_new_job(agent, shared_vars, **job_params) for shared_vars in shared_vars_batch]


class TaskFutureResult(FutureResult):
    """A future that is ready when its job is DONE."""

    stored_in = "statek.task"

    def __init__(self, job: Job) -> None:
        super().__init__(deps=job)
        self.job = job


TaskFutureResult.__name__ = f"{TaskFutureResult.stored_in}.{TaskFutureResult.__qualname__}"


def is_done(future: TaskFutureResult) -> bool:
    return future.job.life.status is JobStatus.DONE


def exit_and_job(future: TaskFutureResult) -> tuple[object, Job]:
    """Return `(exit_status, job)`; success and failure look alike (behaviour 9)."""
    if not is_done(future):
        raise FutureError(future)
    return future.job.py_env.exit_status, future.job


def said_by(future: TaskFutureResult) -> object:
    """Return what the job said, or why it failed."""
    job = future.job
    if not is_done(future):
        raise FutureError(future)
    if job.error is None:
        return "\n".join(chat_responses(job))
    return job.error.error_message if job.py_env.exit_status is None else job.py_env.exit_status


@temporal(complement=exit_and_job, condition=is_done)
@tool
def delegate_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, object] | None = None,
    locale: str | None = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job of `agent` and return a future of `(exit_status, job)`.

    With `parent_job` the child gets a copy of its error handlers.
    """
    kwargs.pop("_local_context", None)
    return TaskFutureResult(create_new_job(agent, shared_vars, parent_job, warmup_code, locale, **kwargs))


@temporal(complement=said_by, condition=is_done)
@tool
def delegate_mute_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, object] | None = None,
    locale: str | None = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job of `agent` and return a future of what it said, joined by newlines."""
    kwargs.pop("_local_context", None)
    return TaskFutureResult(create_new_job(agent, shared_vars, parent_job, warmup_code, locale, **kwargs))


@temporal(complement=said_by, condition=is_done)
@tool
def delegate_mute_dialog(
    agent: DialogAgent,
    message: object,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, object] | None = None,
    locale: str | None = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a dialog job with `message` and return a future of what it said."""
    kwargs.pop("_local_context", None)
    job = start_dialog(agent, message, None, parent_job, shared_vars, locale, **kwargs)
    return TaskFutureResult(job)


__all__ = [
    "TaskFutureResult",
    "create_new_job",
    "delegate_mute_dialog",
    "delegate_mute_task",
    "delegate_task",
    "get_current_job",
    "start_dialog",
    "submit_new_job",
    "submit_new_jobs_batch",
]
