"""The jobs that STATEK's store has: by the names that a test knows them by, and as plain values."""

from __future__ import annotations

from typing import Any

import dbzero
from statek import find_tools
from statek.executors.job import Job

from statek_sim.backends.application import FUTURE, AppJob, ToolUse, ToolUses
from statek_sim.backends.installed.stored_objects import label, stored_value
from statek_sim.backends.record import HandlerCall
from statek_sim.harness.limits import EXCEEDED
from statek_sim.values import IdSource, Message


class KnownJobs:
    """Jobs by name, in order of creation, those that STATEK created by itself included."""

    def __init__(self) -> None:
        self._jobs: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._ids = IdSource()

    def jobs(self) -> dict[str, Any]:
        """Return the jobs by name, oldest first: the store's own order is nobody's promise."""
        newcomers = [job for job in dbzero.find(Job) if dbzero.uuid(job) not in self._names]
        # The store finds the newest first, and jobs of one moment have one time.
        for job in reversed(newcomers):
            self.meet(job, None)
        return self._jobs

    def meet(self, job: Any, name: str | None) -> None:
        """Take in a new job under a name, or under the next one that is free."""
        name = self._ids.next("job") if name is None else name
        while name in self._jobs:
            name = self._ids.next("job")
        self._names[dbzero.uuid(job)] = name
        self._jobs[name] = job

    def name_of(self, job: Any) -> str:
        """Return a job's name."""
        if dbzero.uuid(job) not in self._names:
            self.jobs()
        return self._names[dbzero.uuid(job)]


def described(
    name: str,
    job: Any,
    *,
    others: dict[str, Any],
    llm_calls: int,
    history: tuple[Message, ...],
    tools: list[ToolUse],
    handlers: list[HandlerCall],
) -> AppJob:
    """Return what there is to say about `job`; `others` are all jobs by name."""
    usage = job.usage
    known = (*job.agent.all_tools, *find_tools(None, include_hidden=True))
    return AppJob(
        name=name,
        agent=job.agent.role,
        status=label(job.status),
        stop=_stop(job),
        exit=stored_value(job.py_env.exit_status, future=FUTURE),
        error=None if job.error is None else job.error.error_message,
        definition_errors=tuple(error.error_message for error in job.job_def.get_errors() or ()),
        parent=next((other for other, found in others.items() if _is(found, job.parent_job)), None),
        llm_calls=llm_calls,
        turns=job.num_turns,
        exceptions=job.exception_count,
        streak=job.max_consecutive_exceptions,
        completions=job.num_completions,
        console=tuple(str(entry) for entry in job.py_env.console or ()),
        locals={
            key: stored_value(value, future=FUTURE)
            for key, value in sorted(dict(job.py_env.local_state or {}).items())
        },
        history=history,
        tools=ToolUses.among(tools, (function.__name__ for function in known)),
        handlers=tuple(call for call in handlers if call.job == name),
        subtasks=_subtasks(job, others),
        bytes_sent=usage.total_bytes_sent,
        bytes_received=usage.total_bytes_received,
        approx_tokens=job.approx_token_usage,
    )


def _stop(job: Any) -> str | None:
    """Return why the job's last unit ended: STATEK keeps the outcome, and no word for it (behaviour 2)."""
    if label(job.status) != "DONE":
        return None
    status = job.py_env.exit_status
    message = "" if job.error is None else str(job.error.error_message)
    if message and str(status) == f"Error: {message}":
        return next((str(limit) for limit, begin in EXCEEDED.items() if message.startswith(begin)), "crash")
    if job.error is not None and _crashed_last(job, message):
        return "crash"
    if status is not None:
        return "exit"
    return "warmup" if job.job_def.has_errors() else "final"


def _crashed_last(job: Any, message: str) -> bool:
    """Return whether nothing came after a crash: its error stays when a message starts the job again."""
    console = [*map(str, job.py_env.console or ())]
    if (
        not console
        or not console[-1].startswith("Job ")
        or f" failed with error: {message}" not in console[-1]
    ):
        return False
    return all(getattr(item, "console_pos", 0) < len(console) for item in job.chat_log)


def _subtasks(parent: Any, others: dict[str, Any]) -> dict[str, str]:
    handles = {
        name: job.py_env.local_state.get("sub_task_handler")
        for name, job in others.items()
        if _is(parent, job.parent_job)
    }
    return {
        str(handle.id or name): label(handle.state) for name, handle in handles.items() if handle is not None
    }


def _is(first: Any, second: Any) -> bool:
    return first is not None and second is not None and dbzero.uuid(first) == dbzero.uuid(second)
