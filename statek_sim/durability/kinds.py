"""The closed list of the runtime's own classes whose objects are stored: everything that a job consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import RecurringReminder
from statek_sim.runtime.agents.job_def import JobDef, JobDefError
from statek_sim.runtime.agents.warmup_source import WarmupBlock
from statek_sim.runtime.jobs import post_processing, subtask
from statek_sim.runtime.jobs.inbox import Inbox
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.job_log import JobLog
from statek_sim.runtime.jobs.lifecycle import Difficulty, Life
from statek_sim.runtime.jobs.persistence import Keeping
from statek_sim.runtime.state import calls, chat_log, counters, error_handlers, futures
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.state.pyenv import ConsoleError, ErrorKind, PyEnv
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.containers import Dict, List, Set, Tuple
from statek_sim.runtime.stored.storable_types import KEEPER, EnumValue, Keeper
from statek_sim.usage.totals import TurnUsage
from statek_sim.world.queue import ItemStatus, WorkItem

KINDS: Final[Mapping[str, type]] = {
    kind.__qualname__: kind
    for kind in (
        Job, JobDef, JobDefError, WarmupBlock, Difficulty, Inbox, JobLog, Keeping, Life, PyEnv, ConsoleError, Signal,
        RecurringReminder, post_processing.FinalCheck,
        subtask.SubTaskHandler, subtask.TaskError, task.TaskFutureResult,
        calls.CallSpec, calls.CodeBlock,
        chat_log.ToolError, chat_log.UserLogItem, chat_log.WarmupLogItem, chat_log.LLM_LogItem,
        chat_log.ReminderLogItem, chat_log.PostProcessedItem, chat_log.SubTaskLogItem, chat_log.NotificationLogItem,
        counters.TurnCounters, counters.PositionCounters, counters.LLM_Usage,
        error_handlers.ErrorHandler, error_handlers.HandlerList, error_handlers.LatestInput,
        futures.FutureResult, futures.FutureElement, futures.CombinedFutureResult,
        WorkItem, EnumValue,
    )
} | {f"dbzero.{kind.__name__}": kind for kind in (List, Tuple, Dict, Set)}  # fmt: skip
"""Objects with an identity, by the name in the store. Their attributes are what they consist of."""

RECORDS: Final[Mapping[str, type]] = {kind.__qualname__: kind for kind in (TurnUsage, chat_log.Reasoning)}
"""Named tuples."""

ENUMS: Final[Mapping[str, type[Enum]]] = {
    kind.__qualname__: kind for kind in (JobStatus, ErrorKind, ChatStyle, subtask.SubTaskState, ItemStatus)
}

NAMES: Final[Mapping[type, str]] = {
    kind: name for listed in (KINDS, RECORDS, ENUMS) for name, kind in listed.items()
}

OPEN: Final = (futures.FutureResult, List, Tuple, Dict, Set)
"""Kinds that hold values of the application: what is in them may be more than a store keeps."""

BASES: Final = (futures.FutureResult, Job, JobDef, PyEnv, counters.LLM_Usage)
"""Kinds of which an application has classes of its own."""

PLACE: Final = "#place"
"""What a row calls the place that a keeper gave an object; no attribute has such a name."""

ITEMS: Final = "#items"
"""What a row calls the pairs of an object that is a dict and has attributes."""

_PASSING: Final = frozenset({"_listeners", "in_block", "__weakref__", "__dict__"})
"""Attributes that only one process knows: who listens, and whether a block is running."""


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that are stored, by name."""
    kind: Any = type(value)
    keeper = keeper_of(kind)
    if keeper is not None:
        yield PLACE, keeper.place(value)
    for name in _slots(kind):
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:
            continue
    yield from getattr(value, "__dict__", {}).items()


@lru_cache(maxsize=512)
def slots_of(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]] | None:
    """Return the names of all attributes of a class's objects, and what reads them all at once.

    None where only `attributes` can say: objects have further ones, a place, or a way of their own to be read. What it
    returns raises AttributeError for an object that lacks one.
    """
    names = _slots(kind)
    plain = kind.__dictoffset__ == 0 and all(
        "__getattribute__" not in vars(base) for base in kind.__mro__[:-1]
    )
    if len(names) < 2 or not plain or keeper_of(kind) is not None:
        return None
    return names, attrgetter(*names)


def made(kind: type) -> Any:
    """Return an object of a class without any attribute but those that a process makes for itself."""
    keeper = keeper_of(kind)
    value: Any = object.__new__(kind) if keeper is None else keeper.made(kind)
    if kind is Signal:
        object.__setattr__(value, "_listeners", {})
    if issubclass(kind, PyEnv):
        object.__setattr__(value, "in_block", False)
    return value


def keeper_of(kind: type) -> Keeper | None:
    """Return who gives the objects of a class their places, None for most classes."""
    return getattr(kind, KEEPER, None)


@lru_cache(maxsize=512)
def _slots(kind: type) -> tuple[str, ...]:
    found: list[str] = []
    for base in reversed(kind.__mro__):
        slots = base.__dict__.get("__slots__", ())
        found += (slots,) if isinstance(slots, str) else slots
    return tuple(name for name in found if name not in _PASSING)
