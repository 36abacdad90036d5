"""One world: queue, events and the ledger of side effects that the jobs of a scenario share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from statek_sim.world.external_futures import ExternalEvents
from statek_sim.world.queue import QueueOwner, WorkItem, WorkQueue


class Ledger:
    """Append-only lines. Nothing a job does can take one back."""

    def __init__(self, *, changed: Callable[[str, str], None] | None = None) -> None:
        self.lines: list[str] = []
        self._changed = changed or (lambda _subject, _what: None)

    def write(self, line: object) -> None:
        """Record one side effect: a text or number as it is, anything else as its text."""
        written: Any = line if line is None or isinstance(line, str | int | float) else str(line)
        self.lines.append(written)
        self._changed("ledger", written)


class World:
    """Everything outside the jobs. `changed(subject, what)` hears of every change."""

    def __init__(
        self,
        *,
        owner: str = "worker-1",
        items: Iterable[WorkItem] = (),
        futures: Iterable[str] = (),
        changed: Callable[[str, str], None] | None = None,
    ) -> None:
        self.owner = QueueOwner(owner)
        self.queue = WorkQueue(items, changed=changed)
        self.events = ExternalEvents(futures, changed=changed)
        self.ledger = Ledger(changed=changed)

    def leaked_claims(self) -> list[str]:
        """Return the ids of items that somebody still holds."""
        return [item.id for item in self.queue.claimed()]
