"""Reads a finished run: converts live jobs to plain records, and their values to plain YAML values.

`live_facts` and `plain` also read the installed STATEK's jobs and values, because jobs have the same members
on both runtimes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import count
from operator import getitem
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.backends.record import JobRecord, RunError, RunRecord, UsageRecord, seen_of_job, seen_of_run
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.stored.storable_types import loaded
from statek_sim.sandbox.llm_repr import StoredCollection, shown
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.token_usage import UsageTotals
from statek_sim.values import JSON
from statek_sim.world.world import World

MOST_PARTS: Final = 10_000
"""Maximum number of parts in a value; a value with more parts is shown as text."""
DEEPEST_PART: Final = 50
"""Maximum nesting depth in a value."""
MOST_CHARACTERS: Final = 10_000_000
"""Maximum number of characters in a run's values.

The limit covers the whole run, because a list may contain the same long string a thousand times.
"""


class TooLarge(Exception):
    """Raised for a value that is cyclic or too large to be shown; a string replaces the value."""


class Room:
    """The number of characters `left` for displaying a run's values."""

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS

    def take(self, characters: int) -> bool:
        """Subtract a number of characters; return False if not enough are left."""
        if characters > self.left:
            return False
        self.left -= characters
        return True


def shape(value: object) -> type:
    """Return the built-in class as which a stored collection is displayed, or the value's own class."""
    return value.shown_as if isinstance(value, StoredCollection) else type(value)


def plain(
    value: object,
    shown: Callable[[object], str],
    room: Room | None = None,
    shape: Callable[[object], type] = shape,
) -> JSON:
    """Return `value` as a YAML value. Objects, and values that are too large or cyclic, become their `shown` text.

    `room` is the number of characters left for the run's values, or None for the default. `shape` returns the
    class that a value is displayed as.
    """
    room = room or Room()
    before = room.left
    try:
        return _plain(value, shown, shape, count(), 0, room)
    except TooLarge:
        room.left = before
        text = shown(value)
        return text if room.take(len(text)) else f"<{type(value).__name__}: too large to show>"


def _plain(
    value: Any,
    shown: Callable[[object], str],
    shape: Callable[[object], type],
    parts: Iterator[int],
    depth: int,
    room: Room,
) -> JSON:
    if next(parts) == MOST_PARTS or depth > DEEPEST_PART:
        raise TooLarge
    if value is None or isinstance(value, bool | int | float | str):
        if not room.take(_characters(value)):
            raise TooLarge
        return value
    kind = shape(value)
    if issubclass(kind, list | tuple):
        return [_plain(item, shown, shape, parts, depth + 1, room) for item in value]
    # Keys are checked before they are used: a stored tuple may be a key, and has no hash.
    if issubclass(kind, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(value[key], shown, shape, parts, depth + 1, room) for key in value}
    return shown(value)


def _characters(value: bool | float | str | None) -> int:  # a value of a job
    if isinstance(value, str):
        return len(value)
    return value.bit_length() // 3 if isinstance(value, int) else 0


def record_of(
    scenario: Scenario,
    runtime: Runtime,
    world: World,
    outcome: RunOutcome | None,
    error: RunError | None,
) -> RunRecord:
    """Return the record of a run on the reference runtime; it contains all the data that expectations may use."""
    children: dict[str, list[Job]] = {}
    for job in runtime.jobs:
        if job.parent_job is not None:
            children.setdefault(job.parent_job.id, []).append(job)
    room = Room()
    jobs = {job.id: job_record(job, children.get(job.id, ()), room) for job in runtime.jobs}
    return RunRecord(
        scenario=scenario.id,
        backend="reference",
        jobs=jobs,
        items={
            _named(item.id): {
                "status": str(item.status),
                "owner": item.owner_id,
                "error": plain(item.error_message, shown, room),
            }
            for item in world.queue.items.values()
        },
        leaked_claims=tuple(map(_named, world.leaked_claims())),
        ledger=tuple(world.ledger.lines),
        idle=outcome is not None and bool(outcome.waiting),
        settled=outcome is not None and outcome.settled,
        worker=worker_death(runtime),
        usage=usage_record(runtime.usage()),
        error=error,
        **seen_of_run(runtime.trace),
    )


def _named(item: object) -> str:
    """Return a work item's id as text, because agent code may set any value as the id."""
    return item if isinstance(item, str) else shown(item)


def job_record(job: Job, children: Iterable[Job], room: Room | None = None) -> JobRecord:
    """Return a job's record. `children` are the jobs to which it delegated; `room` is passed to `plain`."""
    room = room or Room()
    totals = UsageTotals()
    for turn in job.usage.turns:
        totals.add(turn)

    def value(stored: object) -> JSON:
        return plain(loaded(stored) if isinstance(stored, type) else stored, shown, room)

    return JobRecord(
        **live_facts(job.id, job, {child.id: child for child in children}, value),
        stop=job.stop_reason,
        steps=job.steps,
        history=tuple(job.sent),
        usage=usage_record(totals),
        **seen_of_job(list(job.trace)),
    )


def live_facts(
    name: str, job: Any, children: Mapping[str, Any], value: Callable[[Any], JSON]
) -> dict[str, Any]:
    """Return the record fields that can be read from the job's own members.

    `children` are the jobs to which it delegated. `value` converts a variable or an exit value to a plain
    value.
    """

    def readable(read: Callable[[], object]) -> JSON:
        # The store may fail to read a stored value.
        try:
            return value(read())
        except RuntimeError as error:
            return f"{type(error).__name__}: {error}"

    env = job.py_env
    variables = env.local_state or {}
    turns = (item for item in job.chat_log if _is(item, "LLM_LogItem") and item.tool_log)
    return {
        "name": name,
        "agent": job.agent.role,
        "status": label(job.status),
        "exit": readable(lambda: env.exit_status),
        "error": None if job.error is None else job.error.error_message,
        "definition_errors": tuple(error.error_message for error in job.job_def.get_errors() or ()),
        "turns": job.num_turns,
        "exceptions": job.exception_count,
        "streak": job.max_consecutive_exceptions,
        "completions": job.num_completions,
        "console": tuple(map(str, env.console or ())),
        "locals": {key: readable(partial(getitem, variables, key)) for key in sorted(variables)},
        "tool_log": tuple(tuple(map(_result, turn.tool_log)) for turn in turns),
        "subtasks": _subtasks(children),
    }


def label(member: object) -> str:
    """Return the name of an enum member, from our enums or STATEK's."""
    return str(member).rpartition(".")[2]


def _is(value: object, kind: str) -> bool:
    """Return whether a value's class is STATEK's class `kind`; STATEK's store adds a prefix to class names."""
    return type(value).__name__.endswith(kind)


def _result(result: Any) -> JSON:
    return {"error": result.err_message} if _is(result, "ToolError") else str(result)


def _subtasks(children: Mapping[str, Any]) -> dict[str, str]:
    """Return the states of the subtasks that these jobs work on, keyed by id."""
    handles = {name: child.py_env.local_state.get("sub_task_handler") for name, child in children.items()}
    return {
        str(handle.id or name): label(handle.state)
        for name, handle in handles.items()
        if _is(handle, "SubTaskHandler")
    }


def usage_record(totals: UsageTotals) -> UsageRecord:
    """Return the usage totals as a frozen record."""
    return UsageRecord(**{field.name: getattr(totals, field.name) for field in fields(UsageRecord)})


def worker_death(runtime: Runtime) -> str | None:
    """Return why the worker is dead at the end of a run, or None if it is alive."""
    changes = [
        event.change
        for event in runtime.trace.events
        if isinstance(event, events.WorldChanged) and event.subject == "worker"
    ]
    return changes[-1] if changes and changes[-1] != "restarted" else None
