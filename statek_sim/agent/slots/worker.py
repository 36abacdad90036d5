"""Slots under asyncio: many agents share one model, the most urgent first, and nobody waits for ever.

    worker = SlotWorker()
    answer = await worker.submit(lambda slot: agent.run(question), submitter="reviewer", priority=2)

There is no task in the background that could die: a job runs in its submitter's own task once a slot is its own. On a
`VirtualLoop` the same code runs in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final, TypeVar

from statek_sim.agent.slots.queue import DEFAULT, SlotQueue, SlotRules, Ticket
from statek_sim.errors import SlotRefused

T = TypeVar("T")

_HELD: ContextVar[tuple[Slot, ...]] = ContextVar("statek_sim_held_slots", default=())
"""The slots for whose jobs the running code works."""


class Slot:
    """The slot that a job holds."""

    def __init__(self, worker: SlotWorker, ticket: Ticket) -> None:
        self._worker = worker
        self._ticket = ticket
        self.waits: dict[Ticket, SlotWorker] = {}
        """The jobs that the job's code has submitted to other workers, and that have not ended."""

    @property
    def submitter(self) -> str:
        """Who submitted the job."""
        return self._ticket.submitter

    @property
    def waited(self) -> float:
        """Seconds that the job has waited for a slot so far."""
        return self._ticket.waited

    def of(self, worker: SlotWorker) -> bool:
        """Return whether this is a slot of `worker` whose job has not ended."""
        return self._worker is worker and self.is_held

    @property
    def is_held(self) -> bool:
        """Whether the job has not ended."""
        return self._ticket.state != "gone"

    async def step(self) -> None:
        """Say that a step is done: a more urgent job gets the slot here, and this one waits until it has it again."""
        await self._worker._step(self._ticket)


class SlotWorker:
    """Runs jobs on a few slots. `submit` waits for a slot and for the result; the rest of the rules is `rules`.

    `name` tells it from other workers in an error.
    """

    def __init__(self, rules: SlotRules = DEFAULT, *, name: str = "") -> None:
        self.shown: Final = f"worker {name!r}" if name else "a worker"
        self._queue = SlotQueue(rules)
        self._slots: dict[Ticket, Slot] = {}
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

    @property
    def has_slot(self) -> bool:
        """Whether a slot is free."""
        return len(self._queue.running) < self._queue.rules.slots

    def holders(self) -> list[Slot | None]:
        """Return who holds the slots; None for a job that has one and has not begun."""
        return [self._slots.get(ticket) for ticket in self._queue.running]

    def holder_of(self, ticket: Ticket) -> Slot | None:
        """Return the slot of a job that has begun."""
        return self._slots.get(ticket)

    # -- jobs --------------------------------------------------------------------------------------------------

    async def submit(self, job: Callable[[Slot], Awaitable[T]], *, submitter: str, priority: int = 5) -> T:
        """Run `job` once a slot is free, and return its result or raise its error.

        `priority` is 1 (urgent) to 10. Raises `SlotRefused` when too many wait, when the worker is closed, when a more
        urgent job took its place (`preempts="cancel"`), when the caller holds a slot of this worker itself, or when
        those who hold them all wait for what the caller holds of other workers.
        """
        self._check_open(submitter)
        _check_outside(self, f"{submitter}: submitted")
        held = [slot for slot in _HELD.get() if slot.is_held]
        if held:
            _check_circle(self, self._queue, submitter, priority, held)
        ticket, displaced = self._queue.add(submitter, priority, now=_now())
        if displaced is not None:
            self._refuse(displaced, ticket)
        self._granted[ticket] = asyncio.get_running_loop().create_future()
        self._idle.clear()
        for slot in held:
            slot.waits[ticket] = self
        try:
            self._give()
            self._cancel_weaker(ticket)
            await self._granted[ticket]
            if ticket in self._ended_early:
                raise SlotRefused(f"{submitter}: {self._ended_early[ticket]}")
            return await self._run(job, ticket)
        finally:
            for slot in held:
                slot.waits.pop(ticket, None)
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

    def _cancel_weaker(self, ticket: Ticket) -> None:
        """End the job that has to go for a more urgent one, where that is the rule."""
        if self._queue.rules.preempts != "cancel" or ticket.state != "waiting":
            return
        # Another one may have come a moment ago, and those that go for it have not gone yet.
        weakest = self._queue.weakest(besides=self._ended_early)
        if weakest is not None and ticket.priority < weakest.priority:
            self._end_early(weakest, "a more urgent job took the slot; submit it again")

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
        slot = self._slots[ticket] = Slot(self, ticket)
        held = _HELD.set((*_HELD.get(), slot))
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
        self._slots.pop(ticket, None)
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
        _check_outside(self, "drained")
        self._closed = self._closed or "is being drained"
        await self._idle.wait()

    async def stop(self) -> None:
        """Take no more jobs, refuse those that wait, cancel those that run, and wait until they have ended.

        Their submitters get a `SlotRefused`; their own tasks go on.
        """
        _check_outside(self, "stopped")
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


def _check_outside(worker: SlotWorker, what: str) -> None:
    """Refuse what is done from a job of the worker's own."""
    held = _HELD.get()
    if held and any(slot.of(worker) for slot in held):
        raise SlotRefused(
            f"{what} from a job that holds a slot of this worker, which would wait for itself; "
            "do it after that job has ended, or call the work directly"
        )


def _check_circle(
    worker: SlotWorker, queue: SlotQueue, submitter: str, priority: int, held: Sequence[Slot]
) -> None:
    """Refuse a job for which those would wait that it would wait for."""
    weakest = queue.weakest()
    if queue.rules.preempts == "cancel" and weakest is not None and priority < weakest.priority:
        return
    found = _circle(worker, held)
    if found is not None:
        raise SlotRefused(
            f"{submitter}: submitted in a circle, in which all would wait for ever: {found}; take the slots of "
            "several workers in one order, or submit after the job has ended"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


# -- who waits for whom ------------------------------------------------------------------------------------------

# A job that holds a slot of one worker may submit to another. When those that hold the other's slots wait for the first
# one, all of them wait for ever, and no worker can see it by itself.


def _circle(wanted: SlotWorker, held: Sequence[Slot]) -> str | None:
    """Return who waits for whom when code that holds `held` waits for `wanted` too; None when somebody goes on."""
    if wanted.has_slot:
        return None
    going: list[Slot] = []
    everybody = list(_reachable(wanted))
    grown = True
    while grown:
        new = [
            one
            for one in everybody
            if one not in going and one not in held and all(_gets(*wait, going) for wait in one.waits.items())
        ]
        going += new
        grown = bool(new)
    if any(one is None or one in going for one in wanted.holders()):
        return None
    return ", ".join(_sentences(wanted, held, going))


def _reachable(wanted: SlotWorker) -> Iterator[Slot]:
    """Yield everybody who is waited for."""
    seen: list[Slot] = []
    workers = [wanted]
    for worker in workers:
        for one in worker.holders():
            if one is not None and one not in seen:
                seen.append(one)
                yield one
                workers += [other for other in one.waits.values() if other not in workers]


def _gets(ticket: Ticket, worker: SlotWorker, going: Sequence[Slot]) -> bool:
    """Return whether a job that was submitted comes to its end: it runs and goes on, or will have somebody's slot."""
    if ticket.state == "running":
        own = worker.holder_of(ticket)
        return own is None or own in going
    return worker.has_slot or any(one is None or one in going for one in worker.holders())


def _sentences(wanted: SlotWorker, held: Sequence[Slot], going: Sequence[Slot]) -> Iterator[str]:
    """Yield who holds what and waits for whom, from the slot that is wanted to those that are held."""
    worker, named = wanted, list[Slot]()
    while True:
        one = next((one for one in worker.holders() if one is not None and one not in named), None)
        if one is None:
            return
        named.append(one)
        if one in held:
            yield f"{one.submitter!r} holds a slot of {worker.shown} and would wait for one of {wanted.shown}"
            return
        following = next((each for each in one.waits.items() if not _gets(*each, going)), None)
        assert following is not None, "who does not go on waits for somebody"
        yield f"{one.submitter!r} holds a slot of {worker.shown} and waits for one of {following[1].shown}"
        worker = following[1]
