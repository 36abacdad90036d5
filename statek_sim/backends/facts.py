"""Reading a finished run: converts live jobs to plain records, and their values to plain YAML values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from statek_sim import trace as events
from statek_sim.backends.record import JobRecord, RunError, RunRecord, UsageRecord, handler_calls, seen_of_job
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.subtask import SubTaskHandler
from statek_sim.runtime.state.chat_log import LLM_LogItem, ToolError
from statek_sim.runtime.stored.storable_types import loaded
from statek_sim.sandbox.llm_repr import StoredCollection, shown
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.totals import UsageTotals
from statek_sim.values import JSON, Parts, Room, TooLarge
from statek_sim.world.world import World


def plain(value: object, shown: Callable[[object], str], room: Room | None = None) -> JSON:
    """Return `value` as a YAML value; objects, and values that are too large or cyclic, as `shown` text.

    `room` is the remaining space for the values of the run, None for no limit.
    """
    room = room or Room()
    before = room.left
    try:
        return _plain(value, shown, Parts(), 0, room)
    except TooLarge:
        room.left = before
        text = shown(value)
        return text if room.take(len(text)) else f"<{type(value).__name__}: too large to show>"


def _plain(value: object, shown: Callable[[object], str], parts: Parts, depth: int, room: Room) -> JSON:
    parts.one(depth)
    if value is None or isinstance(value, bool | int | float | str):
        if not room.take(_characters(value)):
            raise TooLarge
        return value
    if isinstance(value, StoredCollection) and issubclass(value.shown_as, dict):
        entries: Any = value
        # A stored tuple has no hash, so it cannot be a key here.
        if not all(isinstance(key, str) for key in entries):
            return shown(value)
        value = {key: entries[key] for key in entries}
    if isinstance(value, list | tuple) or (
        isinstance(value, StoredCollection) and issubclass(value.shown_as, list | tuple)
    ):
        return [_plain(item, shown, parts, depth + 1, room) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, shown, parts, depth + 1, room) for key, item in value.items()}
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
    *,
    seed: int,
) -> RunRecord:
    """Return everything that expectations may use of a run."""
    children: dict[str, list[Job]] = {}
    for job in runtime.jobs:
        if job.parent_job is not None:
            children.setdefault(job.parent_job.id, []).append(job)
    room = Room()
    jobs = {job.id: job_record(job, children.get(job.id, ()), room) for job in runtime.jobs}
    return RunRecord(
        scenario=scenario.id,
        profile=runtime.profile.name,
        seed=seed,
        backend="reference",
        jobs=jobs,
        handlers=handler_calls(runtime.trace.events),
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
        llm_calls=sum(isinstance(event, events.LLMRequested) for event in runtime.trace.events),
        idle=outcome is not None and bool(outcome.waiting),
        settled=outcome is not None and outcome.settled,
        worker=worker_death(runtime),
        usage=usage_record(runtime.usage()),
        digest=runtime.trace.digest(),
        events=runtime.trace.events,
        error=error,
    )


def _named(item: object) -> str:
    """Return the name of a work item: agents may set any value as one."""
    return item if isinstance(item, str) else shown(item)


def _variable(value: object, room: Room) -> JSON:
    """Return the value of a variable or of an exit, or the error of one that the store cannot read."""
    try:
        return plain(loaded(value) if isinstance(value, type) else value, shown, room)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


def job_record(job: Job, children: Iterable[Job], room: Room | None = None) -> JobRecord:
    """Return one job's facts; `children` are the jobs that it delegated to, `room` is the space for its values."""
    room = room or Room()
    trace = list(job.trace)
    totals = UsageTotals()
    for turn in job.usage.turns:
        totals.add(turn)
    return JobRecord(
        name=job.id,
        agent=job.agent.role,
        status=str(job.status),
        stop=job.stop_reason,
        exit=_variable(job.py_env.exit_status, room),
        error=None if job.error is None else job.error.error_message,
        definition_errors=tuple(error.error_message for error in job.job_def.get_errors()),
        turns=job.num_turns,
        exceptions=job.exception_count,
        streak=job.max_consecutive_exceptions,
        completions=job.num_completions,
        steps=job.steps,
        console=tuple(map(str, job.py_env.lines)),
        locals={name: _variable(value, room) for name, value in sorted(job.locals.items())},
        history=tuple(job.sent),
        tool_log=tuple(
            _tool_log(item) for item in job.chat_log if isinstance(item, LLM_LogItem) and item.tool_log
        ),
        subtasks=_subtasks(children),
        usage=usage_record(totals),
        **seen_of_job(trace),
    )


def usage_record(totals: UsageTotals) -> UsageRecord:
    """Return totals as a frozen record."""
    return UsageRecord(
        bytes_sent=totals.bytes_sent,
        bytes_received=totals.bytes_received,
        approx_tokens=totals.approx_tokens,
        measured_tokens=totals.measured_tokens,
        measured_prompt=totals.measured_prompt,
        measured_completion=totals.measured_completion,
        reported_tokens=totals.reported_tokens,
        tokenizer=totals.tokenizer,
    )


def _tool_log(item: LLM_LogItem) -> tuple[JSON, ...]:
    return tuple(
        {"error": result.err_message} if isinstance(result, ToolError) else result
        for result in item.tool_log or ()
    )


def _subtasks(children: Iterable[Job]) -> dict[str, str]:
    """Return the states of these jobs as subtasks."""
    handles = (child.py_env.local_state.get("sub_task_handler") for child in children)
    return {
        handle.id or handle.job.id: str(handle.state)
        for handle in handles
        if isinstance(handle, SubTaskHandler)
    }


def worker_death(runtime: Runtime) -> str | None:
    """Return why the worker is dead at the end, or None if it lives."""
    changes = [
        event.change
        for event in runtime.trace.events
        if isinstance(event, events.WorldChanged) and event.subject == "worker"
    ]
    return changes[-1] if changes and changes[-1] != "restarted" else None
