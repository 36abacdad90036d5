"""The built-in world on STATEK: the same tools with STATEK's decorators, and objects that STATEK's store can keep.

The store keeps the objects' names, and `LIVE` maps the names to the real objects. The classes have the same
names as in the reference runtime, because agents see these names in text and errors.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Final

import dbzero
import statek
from statek import executors
from statek.exceptions import FutureError
from statek.future import FutureResult as StatekFuture
from statek.future import get_all_future, get_any_future, temporal
from statek.task import delegate_task

from statek_sim.scenario.schema import World as WrittenWorld
from statek_sim.values import JSON
from statek_sim.world import queue
from statek_sim.world import world as events
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import Ledger, ToolApi, World


class Live:
    """The world's real objects in this process."""

    def __init__(self) -> None:
        self.queue = queue.WorkQueue()
        self.events = events.ExternalEvents()


LIVE: Final = Live()


@dbzero.memo
class QueueOwner:
    """A worker's identity."""

    def __init__(self, id: str) -> None:  # noqa: A002  # the field's name
        self.id = id

    def __repr__(self) -> str:
        return f"QueueOwner(id={self.id!r})"


@dbzero.memo
class WorkItem:
    """A work item, identified by its id. Agent code may overwrite `id`, so a separate member is used to look it up."""

    def __init__(self, id: str) -> None:  # noqa: A002  # the field's name
        self.id = id
        self._key: str = id

    @property
    def status(self) -> queue.ItemStatus:
        """Where the item is."""
        found: queue.ItemStatus = LIVE.queue.items[self._key].status
        return found

    @property
    def owner_id(self) -> str | None:
        """Who holds it."""
        found: str | None = LIVE.queue.items[self._key].owner_id
        return found

    @property
    def error_message(self) -> str | None:
        """Why it failed."""
        found: str | None = LIVE.queue.items[self._key].error_message
        return found

    def held_by(self, owner: Any) -> bool:
        """Return whether `owner` holds the claim."""
        return LIVE.queue.items[self._key].held_by(owner)

    def __repr__(self) -> str:
        return repr(LIVE.queue.items[self._key])

    def __llm_repr__(self) -> str:
        return LIVE.queue.items[self._key].__llm_repr__()


@dbzero.memo
class ExternalEvent:
    """An external event, identified by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_ready(self) -> bool:
        """Return whether the value is available; raises an error if the event is broken."""
        return LIVE.events[self.name].is_ready()

    @property
    def value(self) -> object:
        """The value with which the event was resolved."""
        return LIVE.events[self.name].value


@dbzero.memo
class FutureResult(StatekFuture):
    """A future returned by the world's tools. It needs no dependencies, because STATEK polls its condition."""

    def __init__(self, deps: object, state_num: int) -> None:
        super().__init__(deps=None, state_num=state_num)


STORED_ITEMS: Final[dict[str, Any]] = {}
"""The stored items, keyed by id; an item is created when it is first used."""


class Queue:
    """The work queue as used by tools: arguments and results are stored items."""

    @property
    def items(self) -> dict[str, Any]:
        """The stored items, keyed by id."""
        return {name: self._item(name) for name in LIVE.queue.items}

    def _item(self, name: str) -> Any:
        if name not in STORED_ITEMS:
            STORED_ITEMS[name] = WorkItem(name)
        return STORED_ITEMS[name]

    def add(self, item: queue.WorkItem) -> None:
        """Add an item."""
        LIVE.queue.add(item)

    def ready(self) -> int:
        """Return the number of items that can be claimed."""
        return LIVE.queue.ready()

    def claim_next(self, owner: Any) -> Any:
        """Claim the first ready item for `owner`; return None if there is none."""
        item = LIVE.queue.claim_next(owner)
        return None if item is None else self._item(item.id)

    def complete(self, item: Any) -> None:
        """Mark a claimed item as done."""
        LIVE.queue.complete(_live(item))

    def mark_error(self, item: Any, message: str) -> None:
        """Mark an item as failed."""
        LIVE.queue.mark_error(_live(item), message)

    def release(self, item: Any) -> None:
        """Release a claim."""
        LIVE.queue.release(_live(item))


def _live(item: Any) -> Any:
    """Return a stored item's real object.

    Anything else is returned unchanged, so the queue itself raises the error.
    """
    return LIVE.queue.items[item._key] if isinstance(item, WorkItem) else item


@dbzero.memo
class WorkQueue(Queue):
    """The only queue, as a value that jobs can keep."""

    def __init__(self) -> None:
        """Represent the queue of the world."""

    def __llm_repr__(self) -> str:
        return LIVE.queue.__llm_repr__()


class Events:
    """The external events as used by tools and the application."""

    def __getitem__(self, name: str) -> Any:
        return ExternalEvent(LIVE.events[name].name)

    def resolve(self, name: str, value: object) -> None:
        """Resolve the external event `name` with `value`."""
        LIVE.events.resolve(name, value)

    def break_(self, name: str, message: str) -> None:
        """Make the condition of the external event `name` raise an error from now on."""
        LIVE.events.break_(name, message)


class StoredWorld(World):
    """The world whose owners and queue are objects in the store."""

    def new_owner(self, name: str) -> Any:
        """Return a new owner; the store must be open."""
        return QueueOwner(name)

    @property
    def queue_value(self) -> object:
        """The queue as a value for job variables."""
        return WorkQueue()


WORLD: Final = StoredWorld()
"""The world for the scenario running in this process. Its tools are created only once, because hidden tools
must exist before STATEK is initialized, and the store finds functions by name.
"""

AGENTS: Final[dict[str, Any]] = {}

_PUBLISHED: Final = types.ModuleType("statek_sim_published", "Functions that the store finds by name.")
sys.modules[_PUBLISHED.__name__] = _PUBLISHED


def reset(written: WrittenWorld, changed: Callable[[str, str], None]) -> None:
    """Reset the world to the state at the scenario's start; the store must be open.

    `changed` is called on every change.
    """
    work = written.queue
    items = (
        queue.WorkItem(item.id, queue.ItemStatus(item.status), item.owner)
        for item in (work.items if work is not None else ())
    )
    LIVE.queue = queue.WorkQueue(items, changed=changed)
    LIVE.events = events.ExternalEvents(written.futures, changed=changed)
    WORLD.owners = {}
    WORLD.owner = WORLD.owner_named(work.owner if work is not None else "worker-1")
    WORLD.ledger = Ledger(changed=changed)


def registered_tools() -> list[Any]:
    """Return every tool registered in STATEK."""
    return list(statek.system._TOOL_REGISTRY)


def items_now() -> dict[str, JSON]:
    """Return each item's status, owner and error, keyed by id."""
    return {
        item.id: {"status": str(item.status), "owner": item.owner_id, "error": item.error_message}
        for item in LIVE.queue.items.values()
    }


def leaked_claims() -> list[JSON]:
    """Return the ids of items that are still claimed."""
    return [item.id for item in LIVE.queue.claimed()]


def published(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a function into a module under a unique name, so that the store can find the function, and return it."""
    if function.__module__ != _PUBLISHED.__name__:
        function.__qualname__ = function.__qualname__.replace(".<locals>.", "__")
        function.__module__ = _PUBLISHED.__name__
    setattr(_PUBLISHED, function.__qualname__, function)
    return function


def _tool(function: Any = None, **options: Any) -> Any:
    if function is None:
        return lambda given: _tool(given, **options)
    return published(statek.tool(published(function), **options))


def _subtask(function: Any) -> Any:
    return published(statek.subtask(published(function)))


def _error_handler(function: Any) -> Any:
    return published(statek.error_handler(published(function)))


def _temporal(*, complement: Any, condition: Any) -> Any:
    decorate = temporal(complement=published(complement), condition=published(condition))
    return lambda function: published(decorate(function))


def _harness() -> Any:
    """Return the current harness: the scenario's, which replaces STATEK's."""
    return executors.utils.get_llm_harness()


def _make_tools() -> WorldTools:
    WORLD.queue = Queue()  # type: ignore[assignment]  # the same methods, on stored items
    WORLD.events = Events()  # type: ignore[assignment]  # what tools use of it
    api = ToolApi(
        tool=_tool,
        subtask=_subtask,
        error_handler=_error_handler,
        temporal=_temporal,
        future=FutureResult,
        future_error=FutureError,
        get_current_job=statek.get_current_job,
        create_new_job=statek.create_new_job,
        complete_sub_task=statek.complete_sub_task,
        delegate_task=delegate_task,
        any_future=get_any_future,
        all_future=get_all_future,
        get_llm_harness=_harness,
        agents=AGENTS,
        stored=dbzero.memo,
    )
    tools = WorldTools(WORLD, api, extra=(statek.get_any, statek.get_all))
    for name in tools:
        # Looking up a tool creates it.
        assert tools[name] is not None
    return tools


TOOLS: Final = _make_tools()
