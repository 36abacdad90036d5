"""Reading a finished run of STATEK: from its stored jobs to plain values, by the names of `backends.record`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import Any

import dbzero

from statek_sim.backends.installed import stored_world
from statek_sim.backends.installed.stored_objects import label, stored_value
from statek_sim.backends.installed.wire import Message
from statek_sim.backends.installed.worker_crash import Played
from statek_sim.backends.installed.worker_loop import waiting_names
from statek_sim.values import JSON


def run_facts(stage: Played) -> Message:
    """Return everything that was seen of a run."""
    jobs = stage.cast.known()
    facts: Message = {
        "jobs": {name: _job_facts(stage, name, job) for name, job in jobs.items()},
        "events": stage.witness.taken(),
        "items": stored_world.items_now(),
        "leaked_claims": stored_world.leaked_claims(),
        "ledger": list(stored_world.WORLD.ledger.lines),
        # As on the reference runtime: a run that broke off waits for nothing.
        "idle": not stage.broke_off and any(True for _ in waiting_names(jobs)),
        "settled": stage.settled,
        "worker": stage.loop.died,
        "error": stage.error,
    }
    return _with_names(facts, stage.cast.names)


def _with_names(facts: Message, names: dict[str, str]) -> Message:
    """Return the facts with every job's name where STATEK wrote the id that the store gave it."""
    text = json.dumps(facts)
    for uuid, name in names.items():
        text = text.replace(uuid, name)
    named: Message = json.loads(text)
    return named


def _job_facts(stage: Played, name: str, job: Any) -> JSON:
    usage = job.usage
    return {
        "agent": job.agent.role,
        "status": label(job.status),
        "exit": _readable(lambda: job.py_env.exit_status),
        "error": None if job.error is None else job.error.error_message,
        "definition_errors": [error.error_message for error in job.job_def.get_errors() or ()],
        "llm_calls": stage.transport.calls.get(name, 0),
        "turns": job.num_turns,
        "exceptions": job.exception_count,
        "streak": job.max_consecutive_exceptions,
        "completions": job.num_completions,
        "steps": stage.loop.steps.get(name, 0),
        "console": [str(entry) for entry in job.py_env.console or ()],
        "locals": {
            key: _readable(partial(getitem, job.py_env.local_state, key))
            for key in sorted(job.py_env.local_state or {})
        },
        "history": stage.transport.last.get(name, []),
        "tool_log": [_tool_log(item.tool_log) for item in job.chat_log if _is_turn(item) and item.tool_log],
        "delivered": list(stage.delivered.get(name, [])),
        "subtasks": _subtasks(stage, job),
        "bytes_sent": usage.total_bytes_sent,
        "bytes_received": usage.total_bytes_received,
        "approx_tokens": job.approx_token_usage,
        "reported_tokens": (usage.total_input_tokens or 0) + (usage.total_output_tokens or 0),
    }


def _readable(read: Callable[[], Any]) -> JSON:
    """Return the value of a variable or of an exit, or the error of one that the store cannot read."""
    try:
        return stored_value(read())
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


def _is_turn(item: Any) -> bool:
    return type(item).__name__.endswith("LLM_LogItem")


def _tool_log(results: Any) -> list[JSON]:
    return [
        {"error": result.err_message} if type(result).__name__.endswith("ToolError") else str(result)
        for result in results
    ]


def _subtasks(stage: Played, parent: Any) -> dict[str, JSON]:
    states: dict[str, JSON] = {}
    for name, job in stage.cast.jobs.items():
        handle = job.py_env.local_state.get("sub_task_handler")
        if handle is None or job.parent_job is None or dbzero.uuid(job.parent_job) != dbzero.uuid(parent):
            continue
        states[str(handle.id or name)] = label(handle.state)
    return states
