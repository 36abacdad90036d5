"""Slots under asyncio: many agents share one model, the most urgent first, and nobody waits for ever.

    worker = SlotWorker()
    answer = await worker.submit(lambda slot: agent.run(question), submitter="reviewer", priority=2)

There is no task in the background that could die: a job runs in its submitter's own task once a slot is its own. On a
`VirtualLoop` the same code runs in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from statek_sim.agent.slots.queue import DEFAULT, SlotQueue, SlotRules, Ticket
from statek_sim.errors import SlotRefused

T = TypeVar("T")

_HELD: ContextVar[Slot | None] = ContextVar("statek_sim_held_slot", default=None)
"""The slot for whose job the running code works."""


class Slot:
    """The slot that a job holds."""

    def __init__(self, worker: SlotWorker, ticket: Ticket) -> None:
        self._worker = worker
        self._ticket = ticket

    @property
    def submitter(self) -> str:
        """Who submitted the job."""
        return self._ticket.submitter

    @property
    def waited(self) -> float:
        """Seconds that the job has waited for a slot so far."""
        return self._ticket.waited

    @property
    def is_held(self) -> bool:
        """Whether the job has not ended."""
        return self._ticket.state != "gone"

    async def step(self) -> None:
        """Say that a step is done: a more urgent job gets the slot here, and this one waits until it has it again."""
        await self._worker._step(self._ticket)


class SlotWorker:
    """Runs jobs on a few slots. `submit` waits for a slot and for the result; the rest of the rules is `rules`.

    A job holds one slot: it cannot submit to a worker, its own or another one, which could wait for it.
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
        """Take jobs."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Drain at the end of the block, or stop when it failed."""
        await (self.drain() if kind is None else self.stop())

    # -- what people look at -----------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many jobs wait for a slot."""
        return self._queue.waiting

    @property
    def running(self) -> int:
        """How many jobs hold a slot."""
        return len(self._queue.running)

    @property
    def longest_wait(self) -> float:
        """Seconds of the longest wait that ended in a slot."""
        return self._queue.longest_wait

    # -- jobs --------------------------------------------------------------------------------------------------

    async def submit(self, job: Callable[[Slot], Awaitable[T]], *, submitter: str, priority: int = 5) -> T:
        """Run `job` once a slot is free, and return its result or raise its error.

        `priority` is 1 (urgent) to 10. Raises `SlotRefused` when too many wait, when the worker is closed, and when the
        caller holds a slot.
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
                f"{submitter}: the worker {self._closed}; submit before that, or to another one"
            )

    def _refuse(self, displaced: Ticket, newcomer: Ticket) -> None:
        most = self._queue.rules.waiting
        error = SlotRefused(
            f"{displaced.submitter}: {most} jobs wait already, and this one would be served last; "
            "submit it again later, or let more wait (SlotRules.waiting)"
        )
        if displaced is newcomer:
            raise error
        # One that was cancelled a moment ago has gone already.
        if not self._granted[displaced].done():
            self._granted[displaced].set_exception(error)

    def _give(self) -> None:
        while (ticket := self._queue.take(now=_now())) is not None:
            granted = self._granted[ticket]
            if granted.done():
                # Cancelled or refused a moment ago: its submitter has not been told yet.
                self._queue.leave(ticket, now=_now())
            else:
                granted.set_result(None)

    def _end_early(self, ticket: Ticket, why: str) -> None:
        """End a job that has its slot: one that has not begun does not begin."""
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
            # Cancelled by somebody else as well: that is theirs to see.
            if why is None or task.cancelling() > before + 1:
                raise
            raise SlotRefused(f"{ticket.submitter}: {why}") from None
        finally:
            if ticket in self._ended_early and task.cancelling() > before:
                # However it ended: the cancellation was ours, and the submitter's task goes on without it.
                task.uncancel()
            _HELD.reset(held)

    async def _step(self, ticket: Ticket) -> None:
        if ticket.state != "running":
            raise SlotRefused(f"{ticket.submitter}: step() of a job that has ended; call it inside the job")
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
        """Take no more jobs and wait until those there are have ended."""
        _check_outside("drained")
        self._closed = self._closed or "is being drained"
        await self._idle.wait()

    async def stop(self) -> None:
        """Take no more jobs, refuse those that wait, cancel those that run, and wait until they have ended.

        Their submitters get a `SlotRefused`; their own tasks go on.
        """
        _check_outside("stopped")
        self._closed = "was stopped"
        for ticket, future in self._granted.items():
            if ticket in self._tasks:
                self._end_early(ticket, "the worker was stopped in the middle of it")
            elif future.done():
                self._end_early(ticket, "the worker was stopped before it began")
            else:
                future.set_exception(
                    SlotRefused(f"{ticket.submitter}: the worker was stopped before it began")
                )
        await self._idle.wait()


def _check_outside(what: str) -> None:
    """Refuse what is done from a job that holds a slot."""
    held = _HELD.get()
    if held is not None and held.is_held:
        raise SlotRefused(
            f"{what} from a job that holds a slot, which would wait for itself, or for another job that waits for it; "
            "do it after that job has ended, or call the work directly"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
