"""A durable work queue with owners and claims, after the document "Error Handling" (Claim and Cleanup Pattern).

The queue survives the death of jobs and workers: only its own methods change it, and it reports every change. If agent
code writes to an attribute of an item or owner, the value is kept and hides the property or method with that name; the
queue itself uses the real state. Values follow the store's rules (dbzero 0.7.0, as observed).
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
    """The state of a work item."""

    READY = "READY"
    CLAIMED = "CLAIMED"
    DONE = "DONE"
    ERROR = "ERROR"


class StoredObject:
    """An instance of a stored class. Unknown attributes are rejected."""

    __slots__ = ()
    """Subclasses have a slot `_written`."""
    _written: dict[str, tuple[Any, ...]]
    """Values written by agent code, keyed by name, each in a tuple; an empty tuple marks a deleted member."""
    STORED: ClassVar[frozenset[str]] = frozenset()
    """The members that the real package stores; all others are properties."""

    def __init__(self) -> None:
        object.__setattr__(self, "_written", {})

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; agent code sees the value that it wrote."""
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
        """Raise an error for an unknown attribute."""
        raise denied(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; agent code does not change the object's real state."""
        if current_access() == FULL:
            object.__setattr__(self, name, value)
            return
        found = attribute(value)
        self._written[name] = (found.value,)
        if found.error is not None:
            raise found.error

    def __delattr__(self, name: str) -> None:
        """Delete a value written by agent code, or a stored member; anything else is dbzero's error."""
        if name in self.STORED:
            self._written[name] = ()
        elif name in self._written:
            del self._written[name]
        else:
            raise nothing_to_delete(name, known=False)


class QueueOwner:
    """A worker's identity: the owner of a claim. Values that agent code writes to it are visible to all users."""

    def __init__(self, id: str) -> None:  # noqa: A002  # the field's name
        self.id = id

    __str__ = object_text

    def __repr__(self) -> str:
        return f"QueueOwner(id={self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueueOwner) and vars(self) == vars(other)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error for an unknown attribute."""
        raise denied(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, if the store allows it."""
        found = attribute(value)
        vars(self)[name] = found.value
        if found.error is not None:
            raise found.error

    def __delattr__(self, name: str) -> None:
        """Delete an attribute; for an unknown one raise dbzero's error."""
        if name not in vars(self):
            raise nothing_to_delete(name, known=False)
        del vars(self)[name]

    def become(self, members: Mapping[str, Any]) -> None:
        """Restore the state that another process stored."""
        vars(self).clear()
        vars(self).update(members)


class WorkItem(StoredObject):
    """One unit of external work. Change it through its queue, which ignores values that agent code writes to it."""

    # In the order in which a store's rows are displayed.
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
        """Return an equal item, without the values that agent code wrote."""
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
    """Items in the order in which they will be claimed. `changed(item_id, what)` is called at every change."""

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
        """Add an item; raises `BadInput` for an existing id."""
        if item.id in self.items:
            raise BadInput(f"work item {item.id!r} already exists")
        self.items[item.id] = item
        self.signal.fire()

    def ready(self) -> int:
        """Return the number of items that can be claimed."""
        return sum(item.status is ItemStatus.READY for item in self.items.values())

    def claim_next(self, owner: QueueOwner) -> WorkItem | None:
        """Give the first ready item to `owner`; None if there is none."""
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
        """Release a claim, so that another worker can take the item."""
        self._change(item, ItemStatus.READY, owner_id=None)

    def claimed(self) -> list[WorkItem]:
        """Return the claimed items."""
        return [item for item in self.items.values() if item.status is ItemStatus.CLAIMED]

    def _change(
        self, item: WorkItem, status: ItemStatus, *, owner_id: str | None, error: str | None = None
    ) -> None:
        self._before()
        item._become(status=status, owner_id=owner_id, error_message=error)
        self._changed(item.id, f"{status} by {owner_id}" if owner_id else str(status))
        self.signal.fire()
