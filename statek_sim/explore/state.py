"""Digests of the durable state at a point in a run: the state that a new worker would find after a kill.

Points with equal digests continue the same way after a kill, so only one of them is tried. States that cannot be
compared with certainty get different digests, because an unnecessary run is better than a missed bug.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from statek_sim.backends.deviation_plan import Point
from statek_sim.backends.reference import ReferenceRun
from statek_sim.runtime.agents.agent import Agent, JobDef
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.futures import Signal
from statek_sim.trace import HandlerRan, ToolCalled, ToolReturned, Trace

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), date, time, timedelta)
_NAMED: Final = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
_JOB: Final = (
    "status",
    "stop_reason",
    "awaited_result",
    "next_instr_num",
    "warmup_block_num",
    "error",
    "num_completions",
    "difficulty",
)


class _Opaque(Exception):
    """A value whose contents cannot be inspected."""


class _Walk:
    """Converts values to comparable tuples; repeated objects are referenced by number."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, value: Any) -> object:
        """Return `value` as a nested tuple of plain values."""
        if isinstance(value, Enum):
            return (type(value).__name__, value.name)
        if isinstance(value, _PLAIN):
            return value if type(value) in _PLAIN else (type(value).__name__, str(value))
        if isinstance(value, _NAMED):
            return (
                "named",
                getattr(value, "__module__", ""),
                getattr(value, "__qualname__", repr(type(value))),
            )
        if isinstance(value, Job):
            return ("job", value.id)
        if isinstance(value, Agent):
            return ("agent", value.role)
        if isinstance(value, JobDef):
            return ("definition", value.agent.role, len(value.get_errors()))
        if isinstance(value, Signal | Runtime | Trace):
            return type(value).__name__
        number = self._seen.get(id(value))
        if number is not None:
            return ("again", number)
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return self._inside(value)

    def _inside(self, value: Any) -> object:
        kind = type(value).__qualname__
        if isinstance(value, Mapping):
            return (kind, *((self.of(key), self.of(inner)) for key, inner in value.items()))
        if isinstance(value, list | tuple):
            return (kind, *map(self.of, value))
        if isinstance(value, set | frozenset):
            return (kind, *sorted(repr(self.of(inner)) for inner in value))
        fields = _fields(value)
        if fields is None:
            raise _Opaque(kind)
        return (kind, *((name, self.of(inner)) for name, inner in fields))


def _fields(value: object) -> Iterable[tuple[str, object]] | None:
    """Return an object's attributes, keyed by name, or None if there are none to inspect."""
    names = [name for kind in type(value).__mro__ for name in _slots(kind)]
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    found.update(getattr(value, "__dict__", {}))
    if not found and type(value).__module__ != "builtins" and not names:
        return ()
    return found.items() if found else None


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


class States:
    """Computes digests for the points in a run.

    Variables set by a code block become durable when the block ends. A kill inside the block leaves the old variables,
    with their values in their current state.
    """

    def __init__(self) -> None:
        self._in_block: set[str] = set()
        self._names: dict[str, dict[str, object]] = {}
        self._opaque = 0

    def of(self, run: ReferenceRun, point: Point) -> str:
        """Return the digest of the durable state at a point.

        The digest includes the console's and the ledger's text, but only the log's length and last entry, which is
        enough for runs of the same scenario.
        """
        self._look(run, point)
        walk = _Walk()
        try:
            moment: object = (
                run.runtime.clock.now(),
                tuple(map(walk.of, run.world.queue.items.values())),
                _text(run.world.ledger.lines),
                tuple(
                    (event.name, event.resolved, walk.of(event.value), event.broken)
                    for event in run.world.events.all()
                ),
                run.replies.progress(),
                run.begun,
                # Where chance decides, the number of earlier draws matters too.
                len(run.runtime.trace.events) if run.scenario.order == "shuffled" else None,
                repr(run.driver.memory()),
                # A script may depend on the number of a job's requests.
                tuple(job.llm_calls for job in run.runtime.jobs) if run.replies.looks else None,
                tuple(_job(walk, job, self._names[job.id]) for job in run.runtime.jobs),
                _calls_of_own_tools(run),
                # An invariant counts them, and a handler may run without an effect.
                sum(isinstance(event, HandlerRan) for event in run.runtime.trace.events),
            )
        except _Opaque:
            self._opaque += 1
            return f"opaque {self._opaque}"
        return hashlib.blake2b(repr(moment).encode(), digest_size=12).hexdigest()

    def _look(self, run: ReferenceRun, point: Point) -> None:
        """Record the variables of jobs that are not inside a code block, because only these are durable."""
        execution = current_execution()
        if execution is not None and execution.budget is not None:
            self._in_block.add(execution.job.id)
        if point.what == "CodeExecuted":
            self._in_block.discard(point.job)
        if point.what.startswith("worker: "):
            self._in_block.clear()
        for job in run.runtime.jobs:
            if job.id not in self._in_block:
                self._names[job.id] = dict(job.py_env.local_state)


def _calls_of_own_tools(run: ReferenceRun) -> object:
    """Return the number of tool call events if the scenario has user tools, whose effects are not visible."""
    if not any(":" in name for text in run.scenario.agents.values() for name in text.tools):
        return None
    called = (ToolCalled, ToolReturned)
    return sum(isinstance(event, called) for event in run.runtime.trace.events)


def _job(walk: _Walk, job: Job, names: dict[str, object]) -> object:
    env = job.py_env
    return (
        job.id,
        tuple(walk.of(getattr(job, name)) for name in _JOB),
        walk.of(names),
        _text(env.lines),
        len(env.errors),
        walk.of(env.pushed),
        walk.of(env.exit_status),
        walk.of(env.future_result),
        len(job.chat_log),
        walk.of(job.chat_log[-1]) if job.chat_log else None,
        tuple((handler.name, walk.of(handler.context)) for handler in job.error_handlers),
        walk.of(job.inbox),
        job.approx_token_usage,
        len(job.usage.turns),
        job.exception_count,
        len(job.job_def.get_errors()),
    )


def _text(lines: list[str]) -> object:
    return (len(lines), hashlib.blake2b("\n".join(map(repr, lines)).encode(), digest_size=8).hexdigest())
