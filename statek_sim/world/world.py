"""One world: queue, events and the ledger of side effects that the jobs of a scenario share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from statek_sim.world.external_futures import ExternalEvents
from statek_sim.world.queue import QueueOwner, WorkItem, WorkQueue


class Ledger:
    """Append-only lines. Nothing a job does can take one back."""

    def __init__(
        self,
        *,
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._changed = changed or (lambda _subject, _what: None)
        self._before = before or (lambda: None)

    def write(self, line: object) -> None:
        """Record one side effect: a text or number as it is, anything else as its text."""
        self._before()
        written: Any = line if line is None or isinstance(line, str | int | float) else str(line)
        self.lines.append(written)
        self._changed("ledger", written)


class World:
    """Everything outside the jobs. `changed(subject, what)` hears of every change, `before` is asked before each.

    What `before` raises keeps a change from being made: a process that has died changes nothing.
    """

    def __init__(
        self,
        *,
        owner: str = "worker-1",
        items: Iterable[WorkItem] = (),
        futures: Iterable[str] = (),
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.owner = QueueOwner(owner)
        self.owners = {owner: self.owner}
        """Everybody who may hold an item, by id."""
        self.queue = WorkQueue(items, changed=changed, before=before)
        self.events = ExternalEvents(futures, changed=changed, before=before)
        self.ledger = Ledger(changed=changed, before=before)

    def owner_named(self, name: str) -> QueueOwner:
        """Return the owner of this id, the queue's own for an empty one; the same object each time."""
        if not name:
            # Whatever agent code made of its id.
            return self.owner
        if name not in self.owners:
            self.owners[name] = self.new_owner(name)
        return self.owners[name]

    def new_owner(self, name: str) -> QueueOwner:
        """Return an owner that was not there."""
        return QueueOwner(name)

    @property
    def queue_value(self) -> object:
        """The queue as a job's variable has it."""
        return self.queue

    def leaked_claims(self) -> list[str]:
        """Return the ids of items that somebody still holds."""
        return [item.id for item in self.queue.claimed()]
