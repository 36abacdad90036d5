"""A durable work queue with owners and claims, after document "Error Handling" (Claim and Cleanup Pattern).

It survives what kills jobs and workers: only its own methods change it, and every change is reported.
What agent code writes to one of its objects stays with the object and hides properties and methods of its name; the
queue sees what the object is. Values go through the store's rules (dbzero 0.7.0, by running it).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import FunctionType, MethodType
from typing import Any, ClassVar, NoReturn

from statek_sim.errors import BadInput
from statek_sim.runtime.state.access import FULL, access, attribute, current_access, denied, nothing_to_delete
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.stored.storable_types import object_text, read_by
from statek_sim.sandbox.policy import RestrictedMethod


class ItemStatus(StrEnum):
    """Where a work item is."""

    READY = "READY"
    CLAIMED = "CLAIMED"
    DONE = "DONE"
    ERROR = "ERROR"


class StoredObject:
    """An object of a stored class. Attributes that there are not are refused."""

    __slots__ = ()
    """Subclasses have a slot `_written`."""
    _written: dict[str, tuple[Any, ...]]
    """By name, what agent code wrote, alone in a tuple; an empty one is a member that it deleted."""
    STORED: ClassVar[frozenset[str]] = frozenset()
    """The members that the store has on the real side: the others are properties there."""

    def __init__(self) -> None:
        object.__setattr__(self, "_written", {})

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute, for agent code what it wrote there."""
        if current_access() != FULL and not name.startswith("_"):
            written: dict[str, tuple[Any, ...]] = object.__getattribute__(self, "_written")
            if name in written:
                if not written[name]:
                    raise denied(name)
                (value,) = written[name]
                if isinstance(value, FunctionType):
                    read_by(sys._getframe(1), value)
                return value
            found = object.__getattribute__(self, name)
            return RestrictedMethod(found) if type(found) is MethodType else found
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Refuse an attribute that there is not."""
        raise denied(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, for agent code beside what the object is."""
        if current_access() == FULL:
            object.__setattr__(self, name, value)
            return
        found = attribute(value)
        self._written[name] = (found.value,)
        if found.error is not None:
            raise found.error

    def __delattr__(self, name: str) -> None:
        """Delete what agent code wrote, or a member that the store has; anything else is dbzero's error."""
        if name in self.STORED:
            self._written[name] = ()
        elif name in self._written:
            del self._written[name]
        else:
            raise nothing_to_delete(name, known=False)


class QueueOwner:
    """A worker's identity: who holds a claim. What agent code writes to it is so for everybody."""

    def __init__(self, id: str) -> None:  # noqa: A002  # the field's name
        self.id = id

    __str__ = object_text

    def __repr__(self) -> str:
        return f"QueueOwner(id={self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueueOwner) and vars(self) == vars(other)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse an attribute that there is not."""
        raise denied(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, as far as the store takes it."""
        found = attribute(value)
        vars(self)[name] = found.value
        if found.error is not None:
            raise found.error

    def __delattr__(self, name: str) -> None:
        """Delete an attribute; one that there is not is dbzero's error."""
        if name not in vars(self):
            raise nothing_to_delete(name, known=False)
        del vars(self)[name]

    def become(self, members: Mapping[str, Any]) -> None:
        """Be what another process stored."""
        vars(self).clear()
        vars(self).update(members)


class WorkItem(StoredObject):
    """One unit of external work. Change it through its queue; what agent code writes to it, the queue does not see."""

    # In the order in which a store's rows are shown.
    __slots__ = ("id", "status", "owner_id", "error_message", "_written")  # noqa: RUF023
    STORED = frozenset({"id"})

    def __init__(
        self,
        id: str,  # noqa: A002  # the field's name
        status: ItemStatus = ItemStatus.READY,
        owner_id: str | None = None,
        error_message: str | None = None,
    ) -> None:
        super().__init__()
        self._become(id=id, status=status, owner_id=owner_id, error_message=error_message)

    __str__ = object_text

    def __repr__(self) -> str:
        return f"WorkItem(id={self.id!r}, status={self.status!r}, owner_id={self.owner_id!r})"

    def copy(self) -> WorkItem:
        """Return another item that is as this one, without what agent code wrote."""
        return WorkItem(self.id, self.status, self.owner_id, self.error_message)

    def held_by(self, owner: QueueOwner) -> bool:
        """Return whether `owner` holds the claim: the guard that makes duplicate cleanup harmless.

        Source: "Error Handling".
        """
        with access(FULL):
            return self.status is ItemStatus.CLAIMED and self.owner_id == owner.id

    def _become(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __llm_repr__(self) -> str:
        """Return the text that agents see."""
        with access(FULL):
            return f'WorkItem(id="{self.id}",status="{self.status}")'


class WorkQueue:
    """Items in the order in which they will be claimed. `changed(item_id, what)` hears of every change."""

    def __init__(
        self,
        items: Iterable[WorkItem] = (),
        *,
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.items: dict[str, WorkItem] = {}
        self.signal = Signal()
        self._changed = changed or (lambda _item, _what: None)
        self._before = before or (lambda: None)
        for item in items:
            self.add(item)

    def __llm_repr__(self) -> str:
        """Return the text that agents see."""
        return f"WorkQueue(ready={self.ready()})"

    def add(self, item: WorkItem) -> None:
        """Add an item; an id that exists is `BadInput`."""
        if item.id in self.items:
            raise BadInput(f"work item {item.id!r} exists already")
        self.items[item.id] = item
        self.signal.fire()

    def ready(self) -> int:
        """Return how many items can be claimed."""
        return sum(item.status is ItemStatus.READY for item in self.items.values())

    def claim_next(self, owner: QueueOwner) -> WorkItem | None:
        """Give the first ready item to `owner`; None when there is none."""
        for item in self.items.values():
            if item.status is ItemStatus.READY:
                self._change(item, ItemStatus.CLAIMED, owner_id=owner.id)
                return item
        return None

    def complete(self, item: WorkItem) -> None:
        """Finish a claimed item; anything else is a RuntimeError."""
        if item.status is not ItemStatus.CLAIMED:
            raise RuntimeError("item is not claimed by this job")
        self._change(item, ItemStatus.DONE, owner_id=item.owner_id)

    def mark_error(self, item: WorkItem, message: str) -> None:
        """Mark an item as failed; its owner stays visible for the operator."""
        self._change(item, ItemStatus.ERROR, owner_id=item.owner_id, error=message)

    def release(self, item: WorkItem) -> None:
        """Give a claim back, so that another worker can take the item."""
        self._change(item, ItemStatus.READY, owner_id=None)

    def claimed(self) -> list[WorkItem]:
        """Return the items that somebody holds."""
        return [item for item in self.items.values() if item.status is ItemStatus.CLAIMED]

    def _change(
        self, item: WorkItem, status: ItemStatus, *, owner_id: str | None, error: str | None = None
    ) -> None:
        self._before()
        item._become(status=status, owner_id=owner_id, error_message=error)
        self._changed(item.id, f"{status} by {owner_id}" if owner_id else str(status))
        self.signal.fire()
