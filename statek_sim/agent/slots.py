"""Slots: many agents share one model, and the most urgent ones go first."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from statek_sim.errors import BadInput, SlotRefused

URGENT, BACKGROUND = 1, 10
"""The most and least urgent priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """Settings for a pool of slots. Priority 1 is the most urgent, 10 is background work (agent document §9).

    `slots` is the number of jobs that run at a time, and `waiting` the number that may wait (None: no limit).
    """

    slots: int = 1
    waiting: int | None = 50

    aging: float | None = 60.0
    """Seconds of waiting that raise a job by one priority level. If None, only priority counts, and background work may
    wait forever (agent document §9: it ran 901st of 901).
    """

    share: float | None = 1.0
    """Seconds by which each additional waiting job from the same submitter is put back, so that a submitter with a
    hundred jobs does not block one with a single job. If None, submitters are not distinguished (agent document §9).
    """

    preempts: Literal["never", "step"] = "step"
    """How a more urgent job affects a running one: not at all, or it gets the slot at the running job's next step, and
    the running job continues later.

    Source: the agent document §9, as coded there rather than as described.
    """

    full: Literal["refuse", "displace"] = "displace"
    """Which job is rejected if too many are waiting: the new one, or the one that would be served last. In the agent
    document §9, adding a job blocks instead.
    """

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise BadInput(f"slots: expected at least 1, got {self.slots!r}")
        if self.waiting is not None and self.waiting < 0:
            raise BadInput(f"waiting: expected 0 or more jobs, or None for any number, got {self.waiting!r}")
        for name, seconds in (("aging", self.aging), ("share", self.share)):
            if seconds is not None and not 0 < seconds < float("inf"):
                raise BadInput(f"{name}: expected a number of seconds above 0, or None, got {seconds!r}")


DEFAULT: Final = SlotRules()


@dataclass(eq=False, slots=True, kw_only=True)
class Ticket:
    """A job's place in the queue. Times are in seconds on the caller's clock; `waited` is its total waiting time."""

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
        """The sort key for waiting jobs."""
        return (self.due, self.came, self.number)


class SlotQueue:
    """Assigns `rules.slots` slots to waiting jobs."""

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
        """The number of waiting jobs."""
        return self._waiting

    def add(self, submitter: str, priority: int, *, now: float) -> tuple[Ticket, Ticket | None]:
        """Queue a job; return its ticket and the ticket that it displaces, which may be its own."""
        if priority not in range(URGENT, BACKGROUND + 1):
            raise BadInput(f"expected a priority from {URGENT} (urgent) to {BACKGROUND}, got {priority!r}")
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
            # Jobs that have begun and yielded are kept: their work would be lost.
            last = max((job for job in self._all_waiting() if not job.started), key=lambda job: job.order)
        self.leave(last, now=now)
        return ticket, last

    def _due(self, submitter: str, priority: int, now: float) -> float:
        """Return a new job's position, using start-time fair queuing with an allowance for urgency."""
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
        """Assign a free slot to the next job and return its ticket; None if no slot is free or no job is waiting."""
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
        """Remove a job that has ended, was cancelled, or was displaced."""
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
            # Submitters without jobs are removed, so that a million submitters use no memory.
            self._left.pop(ticket.submitter, None)
            self._last_start.pop(ticket.submitter, None)

    def gives_way(self, ticket: Ticket) -> bool:
        """Return whether a more urgent job is waiting for a running job's slot."""
        following = self.next_waiting()
        return (
            following is not None and following.priority < ticket.priority and following.order < ticket.order
        )

    def give_back(self, ticket: Ticket, *, now: float) -> None:
        """Return a running job to the queue, at its former position."""
        self.running.remove(ticket)
        ticket.state, ticket.since = "waiting", now
        self._push(ticket)

    def next_waiting(self) -> Ticket | None:
        """Return the next ticket without assigning a slot, or None if no job is waiting."""
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
"""The maximum number of removed tickets in the heap beyond the number of waiting ones."""

_NO_AGING = 1e9
"""Seconds per priority level without aging: no wait is long enough to make up for one level."""


T = TypeVar("T")

_HELD: ContextVar[Slot | None] = ContextVar("statek_sim_held_slot", default=None)
"""The slot of the job whose code is running."""


class Slot:
    """The slot that a job holds."""

    def __init__(self, worker: SlotWorker, ticket: Ticket) -> None:
        self._worker = worker
        self._ticket = ticket

    @property
    def submitter(self) -> str:
        """The name of the submitter."""
        return self._ticket.submitter

    @property
    def waited(self) -> float:
        """The time for which the job has waited for a slot so far, in seconds."""
        return self._ticket.waited

    @property
    def is_held(self) -> bool:
        """Whether the job is still active."""
        return self._ticket.state != "gone"

    async def step(self) -> None:
        """Yield the slot to a more urgent job, if one is waiting, and wait until this job has it again.

        Call it between a job's steps.
        """
        await self._worker._step(self._ticket)


class SlotWorker:
    """Runs jobs on a few slots, according to `rules`. `submit` waits for a slot and for the result.

    A job that holds a slot cannot submit another job to any worker, because the new job might wait for that slot.
    """

    def __init__(self, rules: SlotRules = DEFAULT) -> None:
        self._queue = SlotQueue(rules)
        self._granted: dict[Ticket, asyncio.Future[None]] = {}
        self._tasks: dict[Ticket, asyncio.Task[object]] = {}
        self._ended_early: dict[Ticket, str] = {}
        self._closed: str | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> SlotWorker:
        """Accept jobs."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Drain at the end of the block, or stop if the block raised an error."""
        await (self.drain() if kind is None else self.stop())

    # -- monitoring --------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """The number of jobs waiting for a slot."""
        return self._queue.waiting

    @property
    def running(self) -> int:
        """The number of jobs holding a slot."""
        return len(self._queue.running)

    @property
    def longest_wait(self) -> float:
        """The longest time that a job has waited for a slot, in seconds."""
        return self._queue.longest_wait

    # -- jobs --------------------------------------------------------------------------------------------------

    async def submit(self, job: Callable[[Slot], Awaitable[T]], *, submitter: str, priority: int = 5) -> T:
        """Run `job` once a slot is free; return its result or raise its error.

        `priority` is 1 (urgent) to 10. Raises `SlotRefused` if too many jobs are waiting, if the worker is closed, or
        if the caller holds a slot.
        """
        self._check_open(submitter)
        _check_outside(f"{submitter}: submitted")
        ticket, displaced = self._queue.add(submitter, priority, now=_now())
        if displaced is not None:
            self._refuse(displaced, ticket)
        self._granted[ticket] = asyncio.get_running_loop().create_future()
        self._idle.clear()
        try:
            self._give()
            await self._granted[ticket]
            if ticket in self._ended_early:
                raise SlotRefused(f"{submitter}: {self._ended_early[ticket]}")
            return await self._run(job, ticket)
        finally:
            self._leave(ticket)

    def _check_open(self, submitter: str) -> None:
        if self._closed is not None:
            raise SlotRefused(
                f"{submitter}: the worker {self._closed}; submit the job earlier, or to another worker"
            )

    def _refuse(self, displaced: Ticket, newcomer: Ticket) -> None:
        most = self._queue.rules.waiting
        error = SlotRefused(
            f"{displaced.submitter}: {most} jobs are already waiting, and this one would be last; submit "
            "it again later, or raise SlotRules.waiting"
        )
        if displaced is newcomer:
            raise error
        # A job that was just cancelled is already removed.
        if not self._granted[displaced].done():
            self._granted[displaced].set_exception(error)

    def _give(self) -> None:
        while (ticket := self._queue.take(now=_now())) is not None:
            granted = self._granted[ticket]
            if granted.done():
                # The job was just cancelled or rejected, but its submitter has not been notified yet.
                self._queue.leave(ticket, now=_now())
            else:
                granted.set_result(None)

    def _end_early(self, ticket: Ticket, why: str) -> None:
        """End a job that holds a slot; if it has not begun, it never will."""
        if ticket not in self._ended_early:
            self._ended_early[ticket] = why
            if ticket in self._tasks:
                self._tasks[ticket].cancel()

    async def _run(self, job: Callable[[Slot], Awaitable[T]], ticket: Ticket) -> T:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._tasks[ticket] = task
        before = task.cancelling()
        slot = Slot(self, ticket)
        held = _HELD.set(slot)
        try:
            return await job(slot)
        except asyncio.CancelledError:
            why = self._ended_early.get(ticket)
            # Also cancelled by other code: pass the cancellation on.
            if why is None or task.cancelling() > before + 1:
                raise
            raise SlotRefused(f"{ticket.submitter}: {why}") from None
        finally:
            if ticket in self._ended_early and task.cancelling() > before:
                # The worker cancelled the job, so the submitter's task continues.
                task.uncancel()
            _HELD.reset(held)

    async def _step(self, ticket: Ticket) -> None:
        if ticket.state != "running":
            raise SlotRefused(
                f"{ticket.submitter}: step() was called after the job ended; call it inside the job"
            )
        if self._queue.rules.preempts != "step" or not self._queue.gives_way(ticket):
            return
        self._queue.give_back(ticket, now=_now())
        self._granted[ticket] = asyncio.get_running_loop().create_future()
        self._give()
        await self._granted[ticket]

    def _leave(self, ticket: Ticket) -> None:
        self._queue.leave(ticket, now=_now())
        self._tasks.pop(ticket, None)
        self._ended_early.pop(ticket, None)
        future = self._granted.pop(ticket, None)
        if future is not None:
            future.cancel()
        self._give()
        if not self._granted:
            self._idle.set()

    # -- the end -----------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Accept no more jobs, and wait until the current ones have ended."""
        _check_outside("drained")
        self._closed = self._closed or "is being drained"
        await self._idle.wait()

    async def stop(self) -> None:
        """Accept no more jobs, reject waiting ones, cancel running ones, and wait until they have ended.

        Their submitters get a `SlotRefused`; the submitters' own tasks continue.
        """
        _check_outside("stopped")
        self._closed = "was stopped"
        for ticket, future in self._granted.items():
            if ticket in self._tasks:
                self._end_early(ticket, "the worker was stopped while the job was running")
            elif future.done():
                self._end_early(ticket, "the worker was stopped before the job began")
            else:
                future.set_exception(
                    SlotRefused(f"{ticket.submitter}: the worker was stopped before the job began")
                )
        await self._idle.wait()


def _check_outside(what: str) -> None:
    """Raise an error if the caller is a job that holds a slot."""
    held = _HELD.get()
    if held is not None and held.is_held:
        raise SlotRefused(
            f"{what} from a job that holds a slot would deadlock; do it after that job has ended, or call "
            "the work directly"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
