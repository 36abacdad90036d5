"""Functions that start jobs, dialogs and delegated tasks, and copy the caller's variables for warmup code.

Application code, tools and agent code call the same functions (document "Jobs", Jobs; STATEK 1.4.2).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, Final, cast

from statek_sim.runtime.agents.agent import Agent, DialogAgent
from statek_sim.runtime.agents.dialog import chat_responses
from statek_sim.runtime.agents.warmup_source import WarmupSource, codes_of, copy_locals
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import Job, get_current_agent
from statek_sim.runtime.state.access import attribute, full_name
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.futures import FutureError, FutureResult, temporal
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.tools.declaration import tool
from statek_sim.runtime.tools.spec import with_statek_docstring

_CONTEXT: Final = "_local_context"
_OURS: Final = ("statek_sim.", "pytest_statek.")


def create_new_job(
    agent: Agent,
    shared_vars: Mapping[str, Any] | None = None,
    parent_job: Job | None = None,
    warmup_code: WarmupSource = None,
    locale: Any = None,
    post_processing: Any = None,
    caller_frame: FrameType | None = None,
    **job_params: Any,
) -> Job:
    """Create a READY job. The caller's variables that `warmup_code` reads are copied; `shared_vars` take precedence.

    Any other keyword is a prompt parameter, except `chat_style`, which sets a dialog agent's style.
    """
    return new_job(
        agent,
        shared_vars,
        parent_job,
        warmup_code,
        locale,
        post_processing,
        caller_frame,
        job_params=job_params,
    )


def new_job(
    agent: Agent,
    shared_vars: Mapping[str, Any] | None = None,
    parent_job: Job | None = None,
    warmup_code: WarmupSource = None,
    locale: Any = None,
    post_processing: Any = None,
    caller_frame: FrameType | None = None,
    *,
    job_params: Mapping[str, Any],
    name: str | None = None,
    message: object = None,
) -> Job:
    """Create a job like `create_new_job`, but with the id `name` and a first user `message`, for tests."""
    params = dict(job_params)
    if params.pop(_CONTEXT, None) is not None:
        _refuse_context()
    style: ChatStyle | None = params.pop("chat_style", None) if isinstance(agent, DialogAgent) else None
    copied: dict[str, Any] = {}
    if warmup_code:
        names = _callers_variables(sys._getframe(1) if caller_frame is None else caller_frame)
        for code in codes_of(warmup_code):
            copy_locals(code, copied, names)
    return current_runtime().create_job(
        agent,
        shared_vars={**copied, **dict(shared_vars or {})},
        parent_job=parent_job,
        warmup_code=warmup_code,
        chat_style=style,
        locale=locale,
        post_processing=post_processing,
        prompt_params=params,
        name=name,
        message=message,
    )


def _refuse_context() -> None:
    """Raise dbzero's error for a tool's `_local_context` that became a job parameter.

    STATEK passes this keyword when agent code calls a tool, and `delegate_task` treats every keyword as a
    parameter. dbzero rejects the first function in the context: one of the agent's functions, or else
    STATEK's own `print` (checked with 1.4.2).
    """
    agent = get_current_agent()
    if agent is None or current_runtime().profile.storage != "dbzero":
        return
    for value in (*agent.context.values(), lambda: None):
        attribute(value)


def named_job(agent: Agent, *, name: str | None = None, message: object = None, **options: Any) -> Job:
    """Create a job like `create_new_job`, but with the id `name` and a first user `message`, for tests."""
    own = {key: options.pop(key) for key in _OWN if key in options}
    return new_job(agent, **own, job_params=options, name=name, message=message)


_OWN: Final = ("shared_vars", "parent_job", "warmup_code", "locale", "post_processing", "caller_frame")


def start_dialog(
    agent: DialogAgent,
    message: Any,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, Any] | None = None,
    locale: Any = None,
    **job_params: Any,
) -> Job:
    """Create a dialog job with its first user message."""
    job = create_new_job(agent, shared_vars, parent_job, warmup_code, locale, **job_params)
    job.push_user_message(message)
    return job


def submit_new_job(
    agent: Agent, shared_vars: Mapping[str, Any] | None = None, locale: Any = None, **job_params: Any
) -> Job:
    """Create a job from application code."""
    return create_new_job(agent, shared_vars, locale=locale, **job_params)


def submit_new_jobs_batch(
    agent: Agent,
    shared_vars_batch: Sequence[Mapping[str, Any] | None],
    locale: Any = None,
    **job_params: Any,
) -> list[Job]:
    """Create one job for each entry in `shared_vars_batch`."""
    return [submit_new_job(agent, shared_vars, locale, **job_params) for shared_vars in shared_vars_batch]


class TaskFutureResult(FutureResult):
    """A future that is ready when its job is DONE."""

    def __init__(self, job: Job) -> None:
        super().__init__(deps=job)
        self.job = job


TaskFutureResult.__name__ = full_name(TaskFutureResult)


def is_done(future: TaskFutureResult) -> bool:
    """Return whether the future's job is DONE."""
    return future.job.life.status is JobStatus.DONE


# Models see the return types of these two functions, which are STATEK's; an exit status can be any value.
def exit_and_job(future: TaskFutureResult) -> tuple[str, Job]:
    """Return `(exit_status, job)`; success and failure look alike (behaviour 9)."""
    if not is_done(future):
        raise FutureError(future)
    return cast("str", future.job.py_env.exit_status), future.job


def said_by(future: TaskFutureResult) -> str:
    """Return a delegated job's messages joined by newlines, or its exit status, or its error message if it failed."""
    job = future.job
    if not is_done(future):
        raise FutureError(future)
    if job.error is None:
        return "\n".join(chat_responses(job))
    return job.error.error_message if job.py_env.exit_status is None else cast("str", job.py_env.exit_status)


@temporal(complement=exit_and_job, condition=is_done)
@tool
@with_statek_docstring
def delegate_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: dict[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job for `agent`, and return a future of `(exit_status, job)`."""
    return _delegated(agent, warmup_code, parent_job, shared_vars, locale, kwargs)


@temporal(complement=said_by, condition=is_done)
@tool
@with_statek_docstring
def delegate_mute_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: dict[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job for `agent`, and return a future of its messages, joined by newlines."""
    return _delegated(agent, warmup_code, parent_job, shared_vars, locale, kwargs)


@temporal(complement=said_by, condition=is_done)
@tool
@with_statek_docstring
def delegate_mute_dialog(
    agent: DialogAgent,
    message: Any,
    parent_job: Job | None = None,
    shared_vars: dict[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a dialog job with `message`, and return a future of its messages, joined by newlines."""
    return TaskFutureResult(start_dialog(agent, message, None, parent_job, shared_vars, locale, **kwargs))


def _delegated(
    agent: Agent,
    warmup_code: WarmupSource,
    parent_job: Job | None,
    shared_vars: Mapping[str, Any] | None,
    locale: Any,
    params: dict[str, Any],
) -> TaskFutureResult:
    return TaskFutureResult(create_new_job(agent, shared_vars, parent_job, warmup_code, locale, **params))


# -- the caller's variables ---------------------------------------------------------------------------------------


def _callers_variables(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the variables of the application function that creates a job, or an empty mapping for agent code."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if not isinstance(module, str):
            return {}
        if not module.startswith(_OURS):
            return frame.f_locals
        frame = frame.f_back
    return {}
