"""The runtime classes whose objects are stored, and the names for objects that are not stored.

A store refers to agents, tools and the world by name (`Anchors`) and does not contain them. Every process
creates them under the same names before it opens the store. Functions and classes are named by their path
from a tool: the tool itself, the function that it wraps, attributes set by decorators, and the tool's
closure.
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
from statek_sim.runtime.state.pyenv import Error, ErrorKind, PyEnv
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.containers import Dict, List, Set, Tuple
from statek_sim.runtime.stored.storable_types import KEEPER, EnumValue, Keeper
from statek_sim.store.codec import Unstorable
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.world.queue import ItemStatus, WorkItem

KINDS: Final[Mapping[str, type]] = {
    kind.__qualname__: kind
    for kind in (
        Job, JobDef, JobDefError, Difficulty, Inbox, JobLog, Keeping, Life, PyEnv, Error, Signal,
        RecurringReminder, post_processing.FinalCheck,
        subtask.SubTaskHandler, subtask.TaskError, task.TaskFutureResult,
        chat_log.CallSpec, chat_log.CodeBlock,
        chat_log.ToolError, chat_log.UserLogItem, chat_log.WarmupLogItem, chat_log.LLM_LogItem,
        chat_log.ReminderLogItem, chat_log.PostProcessedItem, chat_log.SubTaskLogItem, chat_log.NotificationLogItem,
        chat_log.DifficultyChangeLogItem,
        counters.TurnCounters, counters.PositionCounters, counters.LLM_Usage,
        error_handlers.ErrorHandler, error_handlers.HandlerList, error_handlers.LatestInput,
        futures.FutureResult, futures.FutureElement, futures.CombinedFutureResult,
        WorkItem, EnumValue,
    )
} | {f"dbzero.{kind.__name__}": kind for kind in (List, Tuple, Dict, Set)}  # fmt: skip
"""Classes whose objects have an identity, keyed by name in the store. The objects' attributes are stored."""

RECORDS: Final[Mapping[str, type]] = {kind.__qualname__: kind for kind in (TurnUsage, chat_log.Reasoning)}
"""Named tuples."""

ENUMS: Final[Mapping[str, type[Enum]]] = {
    kind.__qualname__: kind for kind in (JobStatus, ErrorKind, ChatStyle, subtask.SubTaskState, ItemStatus)
}

NAMES: Final[Mapping[type, str]] = {
    kind: name for listed in (KINDS, RECORDS, ENUMS) for name, kind in listed.items()
}

OPEN: Final = (futures.FutureResult, List, Tuple, Dict, Set)
"""Classes whose objects contain application values, some of which may not be storable."""

BASES: Final = (futures.FutureResult, Job, JobDef, PyEnv, counters.LLM_Usage)
"""Classes that an application may subclass."""

PLACE: Final = "#place"
"""The row key for the location that a keeper assigned to an object; no attribute has this name."""

ITEMS: Final = "#items"
"""The row key for the items of a dict that also has attributes."""

_PASSING: Final = frozenset({"_listeners", "in_block", "__weakref__", "__dict__"})
"""Per-process attributes that are not stored: listeners, and whether a block is running."""


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield an object's stored attributes as `(name, value)` pairs."""
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
    """Return a slotted class's attribute names, and a function that reads all these attributes together.

    Return None for a class that has a keeper (`keeper_of`) or a custom `__getattribute__`, or whose objects
    have other attributes; use `attributes` for these. The function raises AttributeError for an object that
    lacks an attribute.
    """
    names = _slots(kind)
    plain = kind.__dictoffset__ == 0 and all(
        "__getattribute__" not in vars(base) for base in kind.__mro__[:-1]
    )
    if len(names) < 2 or not plain or keeper_of(kind) is not None:
        return None
    return names, attrgetter(*names)


def made(kind: type) -> Any:
    """Create an empty instance of a class, with only the attributes that are not stored."""
    keeper = keeper_of(kind)
    value: Any = object.__new__(kind) if keeper is None else keeper.made(kind)
    if kind is Signal:
        object.__setattr__(value, "_listeners", {})
    if issubclass(kind, PyEnv):
        object.__setattr__(value, "in_block", False)
    return value


def keeper_of(kind: type) -> Keeper | None:
    """Return a class's keeper, which lets a resumed run find the class's objects again, or None."""
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
    """The names by which a store refers to objects, and to functions and classes in the tools' modules."""

    def __init__(self, in_place_of: Mapping[type, type] | None = None) -> None:
        self._in_place_of = dict(in_place_of or {})
        self._originals = {own: kind for kind, own in self._in_place_of.items()}
        self._objects: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._modules: set[str] = set(_ALWAYS)

    def original(self, kind: type) -> type:
        """Return the runtime's class that an application's class replaces; any other class is returned unchanged."""
        return self._originals.get(kind, kind)

    def in_place_of(self, kind: type) -> type:
        """Return the application's replacement for a runtime class, if any."""
        return self._in_place_of.get(kind, kind)

    def add(self, name: str, value: Any) -> None:
        """Name an object, unless it already has a name."""
        if id(value) in self._names:
            return
        self._objects[name] = value
        self._names[id(value)] = name

    def add_agent(self, agent: Agent) -> None:
        """Name an agent and its tools; a second agent with the same role gets a number."""
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
        """Name a tool, and the functions and classes reachable from it."""
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
        """Return an object's name, or None if it is unnamed."""
        return self._names.get(id(value))

    def named(self, name: str) -> Any:
        """Return the object with this name; raises `Damaged` if this process has no such object."""
        try:
            return self._objects[name]
        except KeyError:
            raise Damaged(
                f"the store refers to {name!r}, which this application does not have; resume with the "
                "same agents and tools as when the run was started"
            ) from None

    # -- functions and classes of modules -------------------------------------------------------------------------

    def global_name(self, value: Any) -> str:
        """Return `module:qualname` for a function or class; raises `Unstorable` if that names another object."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        kind = "class" if isinstance(value, type) else "function"
        if isinstance(value, BuiltinFunctionType) and module is None:
            module = "builtins"
        if not isinstance(module, str) or not self._trusted(module):
            raise Unstorable(f"{kind} {name!r} is not defined in a tool's module")
        try:
            found = _resolved(module, name)
        except (AttributeError, KeyError):
            found = None
        if found is not value:
            raise Unstorable(f"{kind} {name} was created while the job was running")
        return f"{module}:{name}"

    def global_of(self, name: str) -> Any:
        """Return the function or class named by `global_name`. Only loaded modules that define tools are searched."""
        module, _, path = name.partition(":")
        try:
            if not self._trusted(module):
                raise KeyError(module)
            return _resolved(module, path)
        except (AttributeError, KeyError):
            raise Damaged(
                f"the store refers to {name!r}, which is not in a tool's module; resume with the same "
                "tools as when the run was started"
            ) from None

    def _trusted(self, module: str) -> bool:
        return module in self._modules or module.startswith(_OWN)


def _resolved(module: str, path: str) -> Any:
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _leads_to(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes reachable from a function or class."""
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
    """Return a process's anchors: the agents with their tools, other `tools`, and the objects in `named`.

    `in_place_of` maps runtime classes to the application's replacements.
    """
    anchors = Anchors(in_place_of)
    for name, value in named:
        anchors.add(name, value)
    for agent in agents:
        anchors.add_agent(agent)
    for function in tools:
        anchors.add_function(f"tool:{function.__name__}", function)
    return anchors
