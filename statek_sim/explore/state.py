"""What a new worker would find: a digest of everything that is durable at one moment of a run.

Two points with equal digests go on alike after a kill, so that one of them need not be tried. What cannot be told
apart with certainty gets a digest of its own: rather a run too many than one too few.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from statek_sim.backends.reference import ReferenceRun
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.signals import Signal
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
    "raised_at",
)


class _Opaque(Exception):
    """A value that cannot be looked into."""


class _Walk:
    """One walk over values; an object is written once and named by its number after that."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, value: Any) -> object:
        """Return a nested tuple of plain values that stands for `value`."""
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
    """Return the attributes of an object by name; None where it shows none."""
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


def digest_of(run: ReferenceRun, unique: Callable[[], int]) -> str:
    """Return the digest of what is durable now; `unique()` numbers states that cannot be looked into.

    Texts that only grow, console and ledger, count by their length and their last entry: what is compared are moments
    of runs of one scenario.
    """
    walk = _Walk()
    try:
        told: object = (
            run.runtime.clock.now(),
            tuple(map(walk.of, run.world.queue.items.values())),
            _ending(run.world.ledger.lines),
            tuple(
                (event.name, event.resolved, walk.of(event.value), event.broken)
                for event in run.world.events.all()
            ),
            run.replies.progress(),
            repr(run.driver_memory()),
            tuple(_job(walk, job) for job in run.runtime.jobs),
            _calls_of_own_tools(run),
            # An invariant counts them, and a handler may run without doing anything.
            sum(isinstance(event, HandlerRan) for event in run.runtime.trace.events),
        )
    except _Opaque:
        return f"opaque {unique()}"
    return hashlib.blake2b(repr(told).encode(), digest_size=12).hexdigest()


def _calls_of_own_tools(run: ReferenceRun) -> object:
    """Return how many calls of tools began and ended, if some are the user's own: what those did is not seen."""
    if not any(":" in name for text in run.scenario.agents.values() for name in text.tools):
        return None
    called = (ToolCalled, ToolReturned)
    return sum(isinstance(event, called) for event in run.runtime.trace.events)


def _job(walk: _Walk, job: Job) -> object:
    env = job.py_env
    return (
        job.id,
        tuple(walk.of(getattr(job, name)) for name in _JOB),
        walk.of(env.local_state),
        _ending(env.console),
        len(env.exceptions),
        walk.of(env.push_log),
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


def _ending(lines: list[str]) -> object:
    return (len(lines), hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest())
