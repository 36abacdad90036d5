"""Who gets a slot next: pure bookkeeping, told the time, that never waits itself.

A job's place in the queue is a number of seconds, its `due`: when it came, plus `aging` seconds for each level of its
priority, or later where its submitter has more jobs waiting. The job with the smallest `due` is next. Because every
job ages alike, the order of two jobs never changes while they wait, so that a heap holds it; and nobody who comes
`aging` seconds times the levels between them later can overtake: the wait is bounded.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.errors import BadInput

URGENT, BACKGROUND = 1, 10
"""The most and the least urgent priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """The rules of one pool of slots. Priority 1 is the most urgent, 10 background work (004 §9).

    `slots`: how many jobs run at a time. `waiting`: how many may wait beside them; None: any number.
    """

    slots: int = 1
    waiting: int | None = 50

    aging: float | None = 60.0
    """Seconds of waiting that are worth one level of priority; None: priority alone decides, and background work may
    wait for ever (004 §9: it ran 901st of 901)."""

    share: float | None = 1.0
    """Seconds by which a submitter's further waiting job counts as later than the one before it, so that a submitter
    with a hundred jobs keeps nobody waiting who has one; None: submitters are not told apart (004 §9)."""

    preempts: Literal["never", "step"] = "step"
    """What a more urgent job does to one that runs: nothing (004 §9, whatever its text claims); it gets the slot at
    that job's next step, and the job goes on later."""

    full: Literal["refuse", "displace"] = "displace"
    """Who goes when one job too many waits: the newcomer, or the one that would be served last. In 004 §9 the put
    blocks, so that an urgent job waits in front of the queue."""

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise BadInput(f"slots is at least 1, not {self.slots!r}")
        if self.waiting is not None and self.waiting < 0:
            raise BadInput(f"waiting is 0 or more jobs, or None for any number, not {self.waiting!r}")
        for name, seconds in (("aging", self.aging), ("share", self.share)):
            if seconds is not None and not 0 < seconds < float("inf"):
                raise BadInput(f"{name} is a number of seconds above 0, or None for none, not {seconds!r}")


DEFAULT: Final = SlotRules()


@dataclass(eq=False, slots=True, kw_only=True)
class Ticket:
    """One job's place. Times are seconds of the caller's clock; `waited` is what it spent waiting in all."""

    submitter: str
    priority: int
    number: int
    came: float
    due: float
    waited: float = 0.0
    since: float = 0.0
    state: str = "waiting"
    started: bool = False

    @property
    def order(self) -> tuple[float, float, int]:
        """What decides between two that wait."""
        return (self.due, self.came, self.number)


class SlotQueue:
    """Gives `rules.slots` slots to the jobs that wait for them."""

    def __init__(self, rules: SlotRules) -> None:
        self.rules = rules
        self.running: list[Ticket] = []
        self.longest_wait = 0.0
        self._heap: list[tuple[tuple[float, float, int], Ticket]] = []
        self._waiting = 0
        self._made = 0
        self._last_start: dict[str, float] = {}
        self._left: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._waiting

    def add(self, submitter: str, priority: int, *, now: float) -> tuple[Ticket, Ticket | None]:
        """Let a job wait; return its ticket and the one that has to go for it, which may be its own."""
        if priority not in range(URGENT, BACKGROUND + 1):
            raise BadInput(
                f"a priority is a whole number from {URGENT} (urgent) to {BACKGROUND}, not {priority!r}"
            )
        self._made += 1
        ticket = Ticket(
            submitter=submitter,
            priority=priority,
            number=self._made,
            came=now,
            due=self._due(submitter, priority, now),
            since=now,
        )
        self._push(ticket)
        bound = self.rules.waiting
        if bound is None or self._waiting <= bound or self._has_slot():
            return ticket, None
        last = ticket
        if self.rules.full == "displace":
            # Not those that have begun and gave way: what they did would be lost.
            last = max((job for job in self._all_waiting() if not job.started), key=lambda job: job.order)
        self.leave(last, now=now)
        return ticket, last

    def _due(self, submitter: str, priority: int, now: float) -> float:
        """Return a new job's place: start-time fair queuing, with an allowance for urgency."""
        aging = self.rules.aging
        if aging is None and self.rules.share is None:
            return float(priority)
        start = now
        if self.rules.share is not None:
            start = max(now, self._last_start.get(submitter, now - self.rules.share) + self.rules.share)
            self._last_start[submitter] = start
            self._left[submitter] = self._left.get(submitter, 0) + 1
        return start + priority * (aging if aging is not None else _NO_AGING)

    def take(self, *, now: float) -> Ticket | None:
        """Give a free slot to the next job and return its ticket; None when no slot is free or nobody waits."""
        if not self._has_slot():
            return None
        while self._heap:
            _, ticket = heapq.heappop(self._heap)
            if ticket.state != "waiting":
                continue
            self._waiting -= 1
            ticket.state, ticket.started = "running", True
            ticket.waited += now - ticket.since
            self.longest_wait = max(self.longest_wait, ticket.waited)
            self.running.append(ticket)
            return ticket
        return None

    def leave(self, ticket: Ticket, *, now: float) -> None:
        """Take out a job that has ended, was cancelled, or has to go."""
        if ticket.state == "gone":
            return
        if ticket.state == "running":
            self.running.remove(ticket)
        else:
            self._waiting -= 1
            ticket.waited += now - ticket.since
        ticket.state = "gone"
        if len(self._heap) > 2 * self._waiting + _SLACK:
            self._heap = [entry for entry in self._heap if entry[1].state == "waiting"]
            heapq.heapify(self._heap)
        left = self._left.get(ticket.submitter, 0) - 1
        if left > 0:
            self._left[ticket.submitter] = left
        else:
            # What a submitter has no job for is forgotten, so that a million submitters take no room.
            self._left.pop(ticket.submitter, None)
            self._last_start.pop(ticket.submitter, None)

    def gives_way(self, ticket: Ticket) -> bool:
        """Return whether a job of a more urgent priority waits for the slot of one that runs."""
        following = self.next_waiting()
        return (
            following is not None and following.priority < ticket.priority and following.order < ticket.order
        )

    def give_back(self, ticket: Ticket, *, now: float) -> None:
        """Let a job that runs wait again, where it stood before."""
        self.running.remove(ticket)
        ticket.state, ticket.since = "waiting", now
        self._push(ticket)

    def next_waiting(self) -> Ticket | None:
        """Return who is next, without giving anything."""
        while self._heap and self._heap[0][1].state != "waiting":
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def _push(self, ticket: Ticket) -> None:
        self._waiting += 1
        heapq.heappush(self._heap, (ticket.order, ticket))

    def _has_slot(self) -> bool:
        return len(self.running) < self.rules.slots

    def _all_waiting(self) -> list[Ticket]:
        return [ticket for _, ticket in self._heap if ticket.state == "waiting"]


_SLACK = 64
"""Tickets of jobs that have gone, which the heap may hold beside as many as wait."""

_NO_AGING = 1e9
"""Seconds between two levels of priority when there is no aging: no wait makes up for them."""
