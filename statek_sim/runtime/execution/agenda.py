"""What is due, and when: events of the world before steps of jobs, otherwise in the order in which it was planned."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from statek_sim.runtime.state.tool_loop import Timer

EVENT: Final = 0
STEP: Final = 1


@dataclass(frozen=True, order=True, slots=True)
class Due:
    """One agenda entry; `seq` makes equal entries come out in the order they went in."""

    at: float
    priority: int
    seq: int
    action: Callable[[], None] = field(compare=False)
    timer: Timer | None = field(default=None, compare=False)
    """Of an async tool; once cancelled it is nothing that is due."""


class Agenda:
    """Actions at virtual seconds, ordered by `(at, priority, seq)`."""

    def __init__(self) -> None:
        self._seq = 0
        self._due: list[Due] = []

    def add(self, when: float, priority: int, action: Callable[[], None], timer: Timer | None = None) -> None:
        """Plan `action` for virtual second `when`."""
        self._seq += 1
        heapq.heappush(self._due, Due(when, priority, self._seq, action, timer))

    @property
    def next_at(self) -> float | None:
        """When the next thing is due, None when nothing is; cancelled timers are passed over."""
        while self._due and (timer := self._due[0].timer) is not None and timer.cancelled():
            heapq.heappop(self._due)
        return self._due[0].at if self._due else None

    def take(self) -> Due:
        """Take the next thing off."""
        return heapq.heappop(self._due)

    def next_event(self, end: float) -> Due | None:
        """Return the next event of the world that is due by virtual second `end`; it stays on the agenda."""
        return min((due for due in self._due if due.priority == EVENT and due.at <= end), default=None)

    def strike(self, due: Due) -> None:
        """Take one thing off, wherever it stands."""
        self._due.remove(due)
        heapq.heapify(self._due)

    def forget_steps(self) -> None:
        """Keep the events of the world only: what steps wait for dies with their process."""
        self._due = [due for due in self._due if due.priority == EVENT]
        heapq.heapify(self._due)
