"""The objects of the built-in world as STATEK's store can keep them, and values of the store as text and plain YAML.

The objects are stored by name; what a name stands for is in `LIVE`.

The classes have the names of the reference runtime's, which agents see in texts and errors.
"""

from __future__ import annotations

from typing import Any, Final

import dbzero
import statek
from statek.agents import Agent, DialogAgent
from statek.executors.job import Job
from statek.future import FutureResult as StatekFuture

from statek_sim.values import JSON, Parts, TooLarge
from statek_sim.world import queue
from statek_sim.world import world as events


class Live:
    """What the names stand for, in this process."""

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
    """A work item by its id. Agent code may write another one there, so it is looked up by a member of its own."""

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
    """An external event by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_ready(self) -> bool:
        """Return whether the value is there; a broken event raises."""
        return LIVE.events[self.name].is_ready()

    @property
    def value(self) -> object:
        """The value it was resolved with."""
        return LIVE.events[self.name].value


@dbzero.memo
class FutureResult(StatekFuture):
    """A future of the world's tools. It needs no dependencies: STATEK asks its condition."""

    def __init__(self, deps: object, state_num: int) -> None:
        super().__init__(deps=None, state_num=state_num)


STORED_ITEMS: Final[dict[str, Any]] = {}
"""The stored items by id, once they were asked for."""


class Queue:
    """The work queue as tools use it: stored items go in and out."""

    @property
    def items(self) -> dict[str, Any]:
        """The stored items by id."""
        return {name: self._item(name) for name in LIVE.queue.items}

    def _item(self, name: str) -> Any:
        if name not in STORED_ITEMS:
            STORED_ITEMS[name] = WorkItem(name)
        return STORED_ITEMS[name]

    def add(self, item: queue.WorkItem) -> None:
        """Add an item."""
        LIVE.queue.add(item)

    def ready(self) -> int:
        """Return how many items can be claimed."""
        return LIVE.queue.ready()

    def claim_next(self, owner: Any) -> Any:
        """Give the first ready item to `owner`."""
        item = LIVE.queue.claim_next(owner)
        return None if item is None else self._item(item.id)

    def complete(self, item: Any) -> None:
        """Finish a claimed item."""
        LIVE.queue.complete(_live(item))

    def mark_error(self, item: Any, message: str) -> None:
        """Mark an item as failed."""
        LIVE.queue.mark_error(_live(item), message)

    def release(self, item: Any) -> None:
        """Give a claim back."""
        LIVE.queue.release(_live(item))


def _live(item: Any) -> Any:
    """Return what a stored item stands for; anything else is left to fail as it fails in the queue itself."""
    return LIVE.queue.items[item._key] if isinstance(item, WorkItem) else item


@dbzero.memo
class WorkQueue(Queue):
    """The one queue, as a value that jobs can keep."""

    def __init__(self) -> None:
        """Stand for the queue of the world."""

    def __llm_repr__(self) -> str:
        return LIVE.queue.__llm_repr__()


class Events:
    """The external events as tools use them, and the application."""

    def __getitem__(self, name: str) -> Any:
        return ExternalEvent(LIVE.events[name].name)

    def resolve(self, name: str, value: object) -> None:
        """Let the event happen with `value`."""
        LIVE.events.resolve(name, value)

    def break_(self, name: str, message: str) -> None:
        """Make the event's condition raise from now on."""
        LIVE.events.break_(name, message)


def shown(value: Any) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error.

    A job, an agent or a future shows its private fields, which are the runtime's own matter: here it is named.
    """
    if isinstance(value, Job):
        return "<Object>"
    if isinstance(value, StatekFuture):
        return f"{type(value).__name__}(a future)"
    if isinstance(value, Agent):
        kind = "DialogAgent" if isinstance(value, DialogAgent) else "Agent"
        return f'{kind}(role="{value.role}")'
    try:
        # Agent code may not look into everything, and STATEK may be in the middle of some.
        with statek.as_unrestricted():
            return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


def stored_value(value: Any, *, future: str | None = None) -> JSON:
    """Return a value as a YAML value, or as the text an agent would see. The store has its own lists and mappings.

    `future` stands for every future, where one is given. What is too large or contains itself is told as text.
    """
    try:
        return _plain(value, future, Parts(), 0)
    except TooLarge:
        return shown(value)


def _plain(value: Any, future: str | None, parts: Parts, depth: int) -> JSON:
    parts.one(depth)
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if future is not None and isinstance(value, StatekFuture):
        return future
    if isinstance(value, list | tuple) or kind in ("List", "Tuple"):
        return [_plain(item, future, parts, depth + 1) for item in value]
    if isinstance(value, dict) or kind == "Dict":
        # No dict of it: the store's tuples, which may be its keys, have no hash.
        keys = list(value)
        if all(isinstance(key, str) for key in keys):
            return {key: _plain(value[key], future, parts, depth + 1) for key in keys}
    return shown(value)


def label(value: Any) -> str:
    """Return the name of a member of one of STATEK's enumerations."""
    return str(value).rpartition(".")[2]
