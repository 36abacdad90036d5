"""A durable work queue with owners and claims, after document 003 (Claim and Cleanup Pattern).

It survives what kills jobs and workers: only its own methods change it, and every change is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from statek_sim.errors import BadInput
from statek_sim.runtime.state.signals import Signal


class ItemStatus(StrEnum):
    """Where a work item is."""

    READY = "READY"
    CLAIMED = "CLAIMED"
    DONE = "DONE"
    ERROR = "ERROR"


def _denied(name: str) -> AttributeError:
    """Return what agent code gets for an attribute that a durable object does not have: dbzero's own words."""
    return AttributeError(f"Restricted memo attribute access denied: {name}")


@dataclass(frozen=True, slots=True)
class QueueOwner:
    """A worker's identity: who holds a claim."""

    id: str

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse an attribute that there is not."""
        raise _denied(name)


@dataclass(slots=True, eq=False)
class WorkItem:
    """One unit of external work. Change it through its queue."""

    id: str
    status: ItemStatus = ItemStatus.READY
    owner_id: str | None = None
    error_message: str | None = None

    def held_by(self, owner: QueueOwner) -> bool:
        """Return whether `owner` holds the claim: the guard that makes duplicate cleanup harmless (003)."""
        return self.status is ItemStatus.CLAIMED and self.owner_id == owner.id

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse an attribute that there is not."""
        raise _denied(name)

    def __llm_repr__(self) -> str:
        """Return the text that agents see."""
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
        item.status, item.owner_id, item.error_message = status, owner_id, error
        self._changed(item.id, f"{status} by {owner_id}" if owner_id else str(status))
        self.signal.fire()
