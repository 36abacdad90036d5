"""The jobs in STATEK's store, by name, and the values of its jobs as text and plain YAML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import Any

import dbzero
import statek
from statek.agents import Agent, DialogAgent
from statek.executors.job import Job
from statek.future import FutureResult as StatekFuture

from statek_sim.values import JSON, IdSource, Parts, TooLarge


class JobRegistry:
    """Jobs by name, in order of creation; `names` by the ids from the store.

    Instrumentation reports which jobs are `born`. `met(name, job)` is called for each before any of its events.
    """

    def __init__(self) -> None:
        self._ids = IdSource()
        self._newborn: list[Any] = []
        self._introducing = False
        self.jobs: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.met: Callable[[str, Any], None] = lambda _name, _job: None

    def born(self, job: Any) -> None:
        """Record a job that was created."""
        self._newborn.append(job)

    def introduce(self) -> None:
        """Name the jobs created since the last time, in this order, which is also the order of calls to `met`."""
        if self._introducing:
            return
        self._introducing = True
        try:
            while self._newborn:
                job = self._newborn.pop(0)
                if dbzero.uuid(job) not in self.names:
                    self.meet(job)
        finally:
            self._introducing = False

    def known(self) -> dict[str, Any]:
        """Return the jobs by name, oldest first, including those that STATEK created itself."""
        self.introduce()
        return self.jobs

    def meet(self, job: Any, name: str | None = None) -> None:
        """Register a new job under a name, or under the next free one."""
        name = self._ids.next("job") if name is None else name
        while name in self.jobs:
            name = self._ids.next("job")
        self.names[dbzero.uuid(job)] = name
        self.jobs[name] = job
        self.met(name, job)

    def name_of(self, job: Any) -> str:
        """Return a job's name; the empty text without a job."""
        if job is None:
            return ""
        if dbzero.uuid(job) not in self.names:
            self.introduce()
        return self.names[dbzero.uuid(job)]


def job_facts(name: str, jobs: dict[str, Any], *, future: str | None = None) -> dict[str, JSON]:
    """Return the store's facts about the job `name`, by the names of `backends.record`; `jobs` are all jobs.

    `future` replaces every future among its values, if given.
    """
    job = jobs[name]
    usage, state = job.usage, job.py_env.local_state or {}
    return {
        "agent": job.agent.role,
        "status": label(job.status),
        "exit": _readable(lambda: job.py_env.exit_status, future),
        "error": None if job.error is None else job.error.error_message,
        "definition_errors": [error.error_message for error in job.job_def.get_errors() or ()],
        "turns": job.num_turns,
        "exceptions": job.exception_count,
        "streak": job.max_consecutive_exceptions,
        "completions": job.num_completions,
        "console": [str(entry) for entry in job.py_env.console or ()],
        "locals": {key: _readable(partial(getitem, state, key), future) for key in sorted(state)},
        "tool_log": [_tool_log(item.tool_log) for item in job.chat_log if _is_turn(item) and item.tool_log],
        "subtasks": _subtasks(job, jobs),
        "bytes_sent": usage.total_bytes_sent,
        "bytes_received": usage.total_bytes_received,
        "approx_tokens": job.approx_token_usage,
        "reported_tokens": (usage.total_input_tokens or 0) + (usage.total_output_tokens or 0),
    }


def parent_of(job: Any, jobs: dict[str, Any]) -> str | None:
    """Return the name of a job's parent among `jobs`."""
    return next((name for name, found in jobs.items() if _is(found, job.parent_job)), None)


def _readable(read: Callable[[], Any], future: str | None) -> JSON:
    """Return the value of a variable or of an exit, or the error of one that the store cannot read."""
    try:
        return stored_value(read(), future=future)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


def _is_turn(item: Any) -> bool:
    return type(item).__name__.endswith("LLM_LogItem")


def _tool_log(results: Any) -> list[JSON]:
    return [
        {"error": result.err_message} if type(result).__name__.endswith("ToolError") else str(result)
        for result in results
    ]


def _subtasks(parent: Any, jobs: dict[str, Any]) -> dict[str, JSON]:
    """Return the states of a job's subtasks by id."""
    handles = {
        name: job.py_env.local_state.get("sub_task_handler")
        for name, job in jobs.items()
        if _is(parent, job.parent_job)
    }
    return {
        str(handle.id or name): label(handle.state) for name, handle in handles.items() if handle is not None
    }


def _is(first: Any, second: Any) -> bool:
    return first is not None and second is not None and bool(dbzero.uuid(first) == dbzero.uuid(second))


def shown(value: Any) -> str:
    """Return the text that an agent would see; for an object whose own text raises, its class and the error.

    A job, an agent or a future would show its private fields, which are internal: here it is named.
    """
    if isinstance(value, Job):
        return "<Object>"
    if isinstance(value, StatekFuture):
        return f"{type(value).__name__}(a future)"
    if isinstance(value, Agent):
        kind = "DialogAgent" if isinstance(value, DialogAgent) else "Agent"
        return f'{kind}(role="{value.role}")'
    try:
        # Agent code may not read everything, and STATEK may be in the middle of running some.
        with statek.as_unrestricted():
            return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


def stored_value(value: Any, *, future: str | None = None) -> JSON:
    """Return a value as a YAML value, or as the text that an agent would see. The store has its own lists and mappings.

    `future` replaces every future, if given. A value that is too large or cyclic becomes text.
    """
    try:
        return _plain(value, future, Parts(), 0)
    except TooLarge:
        return shown(value)


def _plain(value: Any, future: str | None, parts: Parts, depth: int) -> JSON:
    parts.one(depth)
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if future is not None and isinstance(value, StatekFuture):
        return future
    if isinstance(value, list | tuple) or kind in ("List", "Tuple"):
        return [_plain(item, future, parts, depth + 1) for item in value]
    if isinstance(value, dict) or kind == "Dict":
        # Not a dict: the store's tuples, which may be its keys, have no hash.
        keys = list(value)
        if all(isinstance(key, str) for key in keys):
            return {key: _plain(value[key], future, parts, depth + 1) for key in keys}
    return shown(value)


def label(value: Any) -> str:
    """Return the name of a member of one of STATEK's enumerations."""
    return str(value).rpartition(".")[2]
