"""The closed list of the runtime's own classes whose objects are stored: everything that a job consists of.

A store names agents, tools and the world (`Anchors`), and holds nothing of them: every process has them before it opens
the store, by the same names. Functions and classes are found from the tools: the tool itself, what it is wrapped
around, what decorators attached to it, and what it closes over.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from statek_sim.errors import Damaged
from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import Agent, JobDef, JobDefError, RecurringReminder
from statek_sim.runtime.jobs import post_processing, subtask
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.job_log import JobLog, Keeping
from statek_sim.runtime.jobs.lifecycle import Difficulty, Inbox, Life
from statek_sim.runtime.state import chat_log, counters, error_handlers, futures
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.state.pyenv import ConsoleError, ErrorKind, PyEnv
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.containers import Dict, List, Set, Tuple
from statek_sim.runtime.stored.storable_types import KEEPER, EnumValue, Keeper
from statek_sim.store.codec import Unstorable
from statek_sim.usage.totals import TurnUsage
from statek_sim.world.queue import ItemStatus, WorkItem

KINDS: Final[Mapping[str, type]] = {
    kind.__qualname__: kind
    for kind in (
        Job, JobDef, JobDefError, Difficulty, Inbox, JobLog, Keeping, Life, PyEnv, ConsoleError, Signal,
        RecurringReminder, post_processing.FinalCheck,
        subtask.SubTaskHandler, subtask.TaskError, task.TaskFutureResult,
        chat_log.CallSpec, chat_log.CodeBlock,
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


_NAMED: Final = (FunctionType, type)
_ALWAYS: Final = frozenset({"builtins", "math", "datetime", "decimal", "json", "re", "statistics"})
_OWN: Final = ("statek_sim.runtime.", "statek_sim.world.")


class Anchors:
    """Objects by name, and names by object; also functions and classes of modules that the tools come from."""

    def __init__(self, in_place_of: Mapping[type, type] | None = None) -> None:
        self._in_place_of = dict(in_place_of or {})
        self._originals = {own: kind for kind, own in self._in_place_of.items()}
        self._objects: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._modules: set[str] = set(_ALWAYS)

    def original(self, kind: type) -> type:
        """Return the runtime's class that one of the application's is in the place of; any other class is itself."""
        return self._originals.get(kind, kind)

    def in_place_of(self, kind: type) -> type:
        """Return the application's class where it has one in the place of a class of the runtime's."""
        return self._in_place_of.get(kind, kind)

    def add(self, name: str, value: Any) -> None:
        """Name an object; one that has a name keeps it."""
        if id(value) in self._names:
            return
        self._objects[name] = value
        self._names[id(value)] = name

    def add_agent(self, agent: Agent) -> None:
        """Name an agent and everything that leads from it; a second agent of a role is told by its number."""
        name, number = f"agent:{agent.role}", 1
        while name in self._objects and self._objects[name] is not agent:
            number += 1
            name = f"agent:{agent.role}#{number}"
        if name in self._objects:
            return
        self.add(name, agent)
        reminder = getattr(agent, "reminder", None)
        if reminder is not None:
            self.add(f"{name}/reminder", reminder)
        for function in agent.all_tools:
            self.add_function(f"{name}/{function.__name__}", function)
        for key, value in agent.context.items():
            if isinstance(value, _NAMED):
                self.add_function(f"{name}/context/{key}", value)

    def add_function(self, name: str, function: Any) -> None:
        """Name a tool and the functions and classes that it leads to."""
        open_ = [(name, function)]
        seen: set[int] = set()
        while open_:
            path, found = open_.pop(0)
            if id(found) in seen:
                continue
            seen.add(id(found))
            module = getattr(found, "__module__", None)
            if isinstance(module, str) and not module.startswith("statek_sim."):
                self._modules.add(module)
            self.add(path, found)
            open_ += [(f"{path}/{key}", one) for key, one in _leads_to(found)]

    def name_of(self, value: object) -> str | None:
        """Return the name of an object, None where it has none."""
        return self._names.get(id(value))

    def named(self, name: str) -> Any:
        """Return the object of a name; `Damaged` where this process has none."""
        try:
            return self._objects[name]
        except KeyError:
            raise Damaged(
                f"the store names {name!r}, which this application does not have: resume with the agents and tools "
                "that the run began with"
            ) from None

    # -- functions and classes of modules -------------------------------------------------------------------------

    def global_name(self, value: Any) -> str:
        """Return `module:qualname` of a function or class; `Unstorable` where that does not lead to it."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        kind = "class" if isinstance(value, type) else "function"
        if isinstance(value, BuiltinFunctionType) and module is None:
            module = "builtins"
        if not isinstance(module, str) or not self._trusted(module):
            raise Unstorable(f"{kind} {name!r} is of no module that the tools come from")
        try:
            found = _resolved(module, name)
        except (AttributeError, KeyError):
            found = None
        if found is not value:
            raise Unstorable(f"{kind} {name} is made while the job runs")
        return f"{module}:{name}"

    def global_of(self, name: str) -> Any:
        """Return what `global_name` named. Nothing is imported: only modules of the tools are looked into."""
        module, _, path = name.partition(":")
        try:
            if not self._trusted(module):
                raise KeyError(module)
            return _resolved(module, path)
        except (AttributeError, KeyError):
            raise Damaged(
                f"the store names {name!r}, which is in no module that the tools come from: resume with the tools that "
                "the run began with"
            ) from None

    def _trusted(self, module: str) -> bool:
        return module in self._modules or module.startswith(_OWN)


def _resolved(module: str, path: str) -> Any:
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _leads_to(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes that a function or class leads to."""
    if not isinstance(value, FunctionType):
        return
    for name, one in sorted(vars(value).items()):
        if isinstance(one, _NAMED):
            yield name, one
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        one = _content(cell)
        if isinstance(one, _NAMED):
            yield name, one


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def anchored(
    agents: Iterable[Agent],
    named: Iterable[tuple[str, object]],
    tools: Iterable[Callable[..., Any]] = (),
    in_place_of: Mapping[type, type] | None = None,
) -> Anchors:
    """Return the anchors of a process: its agents with their tools, further `tools`, and the objects in `named`.

    `in_place_of` are classes of the application's by the runtime's that they are used for.
    """
    anchors = Anchors(in_place_of)
    for name, value in named:
        anchors.add(name, value)
    for agent in agents:
        anchors.add_agent(agent)
    for function in tools:
        anchors.add_function(f"tool:{function.__name__}", function)
    return anchors
