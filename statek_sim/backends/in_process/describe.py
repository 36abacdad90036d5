"""One of STATEK's stored jobs as a plain value."""

from __future__ import annotations

from typing import Any, Final

import dbzero
from statek.future import FutureResult

from statek_sim.backends.application import FUTURE, AppJob, ToolUse
from statek_sim.backends.installed.handler_log import shown
from statek_sim.backends.record import HandlerCall
from statek_sim.values import JSON, Message

_LIMITS: Final = {
    "Maximum number of turns exceeded": "max_turns",
    "Maximum number of exceptions exceeded": "max_exceptions",
    "Maximum consecutive exceptions exceeded": "max_consecutive_exceptions",
    "Maximum token usage exceeded": "max_token_usage",
}
"""The limits by how STATEK's harness begins to speak of them."""


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
    return AppJob(
        name=name,
        agent=job.agent.role,
        status=label(job.status),
        stop=_stop(job),
        exit=plain(job.py_env.exit_status),
        error=None if job.error is None else job.error.error_message,
        definition_errors=tuple(error.error_message for error in job.job_def.get_errors() or ()),
        parent=next((other for other, found in others.items() if _is(found, job.parent_job)), None),
        llm_calls=llm_calls,
        turns=job.num_turns,
        exceptions=job.exception_count,
        streak=job.max_consecutive_exceptions,
        completions=job.num_completions,
        console=tuple(str(entry) for entry in job.py_env.console or ()),
        locals={key: plain(value) for key, value in sorted(dict(job.py_env.local_state or {}).items())},
        history=history,
        tools=tuple(tools),
        handlers=tuple(call for call in handlers if call.job == name),
        subtasks=_subtasks(job, others),
        bytes_sent=usage.total_bytes_sent,
        bytes_received=usage.total_bytes_received,
        approx_tokens=job.approx_token_usage,
    )


def label(value: Any) -> str:
    """Return the name of a member of one of STATEK's enumerations."""
    return str(value).rpartition(".")[2]


def plain(value: Any) -> JSON:
    """Return a value as plain data, or as the text an agent would see. The store has its own lists and mappings."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, FutureResult):
        return FUTURE
    if isinstance(value, list | tuple) or kind in ("List", "Tuple"):
        return [plain(item) for item in value]
    if isinstance(value, dict) or kind == "Dict":
        pairs = dict(value)
        if all(isinstance(key, str) for key in pairs):
            return {key: plain(item) for key, item in pairs.items()}
    return shown(value)


def _stop(job: Any) -> str | None:
    """Return why the job's last unit ended: STATEK keeps the outcome, and no word for it (behaviour 2)."""
    if label(job.status) != "DONE":
        return None
    status = job.py_env.exit_status
    if job.error is not None:
        message = str(job.error.error_message)
        stopped = str(status) == f"Error: {message}"
        return next(
            (limit for begin, limit in _LIMITS.items() if stopped and message.startswith(begin)), "crash"
        )
    if status is not None:
        return "exit"
    return "warmup" if job.job_def.has_errors() else "final"


def _subtasks(parent: Any, others: dict[str, Any]) -> dict[str, str]:
    handles = {
        name: job.py_env.local_state.get("sub_task_handler")
        for name, job in others.items()
        if _is(parent, job.parent_job)
    }
    return {
        str(handle.id or name): label(handle.state) for name, handle in handles.items() if handle is not None
    }


def _is(one: Any, other: Any) -> bool:
    return one is not None and other is not None and dbzero.uuid(one) == dbzero.uuid(other)
