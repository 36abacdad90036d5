"""Every interleaving of a few jobs that come, end, fail and are cancelled, on a slot worker beside a model of one slot.

They are played on a fresh worker, in virtual time and on one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, Protocol

from statek_sim.virtual_loop import VirtualLoop, run_in

JOBS: Final = 5
"""Jobs that are explored."""
_RACING: Final = 3
"""Up to so many jobs, acts are played at once too."""
_SETTLE: Final = 12
"""Passes of the event loop after which nothing is expected to be on its way."""


class SlotFinding(StrEnum):
    """What can be wrong with a slot worker."""

    IDLE = "a slot is free and a job waits"
    CROWDED = "more jobs run than there are slots"
    ORDER = "a less urgent or later job runs first"
    GHOST = "a job runs whose submitter was cancelled"
    WRONG_RESULT = "a submitter gets another job's result or error"
    LOST = "a submitter whose job has ended waits on"
    RAISES = "the worker raises"


Work = Callable[[], Awaitable[object]]
"""What a job does."""


class SlotAdapter(Protocol):
    """One worker with one slot, for the checker."""

    async def open(self) -> None:
        """Start it, if it has to be started."""

    async def submit(self, work: Work, *, name: str, priority: int) -> object:
        """Run `work` when it is its turn; return its result or raise its error. Priority 1 is the most urgent."""


MakeSlotWorker = Callable[[], SlotAdapter]
"""Returns a fresh adapter; called inside a running event loop."""

_Verb = Literal["comes", "ends", "fails", "is cancelled"]


@dataclass(frozen=True, slots=True)
class _Act:
    """What happens next: to which job, and how urgent it is when it comes."""

    verb: _Verb
    job: int
    priority: int = 0


def check_slot_worker(make_worker: MakeSlotWorker, *, jobs: int = JOBS) -> int:
    """Play every interleaving of up to `jobs` jobs on a worker; return how many were played.

    A job comes with priority 1 or 5, waits, runs, and ends or fails; its submitter may be cancelled at any time. Jobs
    of one priority run in the order in which they came; one that runs is left alone. Fails with
    the shortest interleaving that shows one of `SlotFinding`.
    """
    tried = 0
    for count in range(1, jobs + 1):
        every = [(acts, together) for acts in _whole(count) for together in _races(acts)]
        tried += len(every)
        wrong = [found for played in every if (found := _played(make_worker, *played)) is not None]
        if wrong:
            raise AssertionError(min(wrong, key=_length).sentence)
    return tried


@dataclass(frozen=True, slots=True)
class _Wrong:
    """An interleaving up to the act that shows what is wrong, and the sentence about it."""

    acts: int
    finding: SlotFinding
    sentence: str


def _length(wrong: _Wrong) -> int:
    return wrong.acts


# -- interleavings -----------------------------------------------------------------------------------------------


def _whole(count: int) -> Iterator[tuple[_Act, ...]]:
    """Yield the interleavings of `count` jobs that all come and go.

    Up to three jobs everything may happen to each of them, in any order. Beyond that at most one job is cancelled and
    at most one fails: what goes wrong with two of a kind goes wrong with one and a bystander.
    """
    yield from _grown((), _State(count, unusual=2 * count if count <= 3 else 1))


def _races(acts: Sequence[_Act]) -> Iterator[int | None]:
    """Yield None, every act for itself, and the places of two that may happen at once, one of them a cancellation."""
    yield None
    if max(act.job for act in acts) < _RACING:
        for place in range(len(acts) - 1):
            if "is cancelled" in (acts[place].verb, acts[place + 1].verb):
                yield place


@dataclass(frozen=True, slots=True)
class _State:
    """The model: who waits, in the order in which they will run, and who runs."""

    count: int
    unusual: int
    come: int = 0
    waiting: tuple[tuple[int, int], ...] = ()
    running: tuple[int, int] | None = None
    failed: int = 0
    cancelled: int = 0

    def after(self, act: _Act) -> _State:
        """Return the state after an act."""
        come, waiting, running = self.come, list(self.waiting), self.running
        if act.verb == "comes":
            come += 1
            waiting.append((act.priority, act.job))
        elif running is not None and running[1] == act.job:
            running = None
        else:
            waiting = [entry for entry in waiting if entry[1] != act.job]
        if running is None and waiting:
            running = min(waiting)
            waiting.remove(running)
        return _State(
            self.count,
            self.unusual,
            come,
            tuple(waiting),
            running,
            self.failed + (act.verb == "fails"),
            self.cancelled + (act.verb == "is cancelled"),
        )

    def with_running(self, jobs: Sequence[int]) -> _State:
        """Return the state with another of those that may run in the slot: two acts at once have no order."""
        here = [*self.waiting, *([self.running] if self.running is not None else [])]
        chosen = next((entry for entry in here if [entry[1]] == list(jobs)), None)
        if chosen is None:
            return self
        waiting = tuple(entry for entry in here if entry != chosen)
        return replace(self, running=chosen, waiting=waiting)


def _grown(acts: tuple[_Act, ...], state: _State) -> Iterator[tuple[_Act, ...]]:
    if state.come == state.count and state.running is None:
        yield acts
        return
    for act in _possible(state):
        yield from _grown((*acts, act), state.after(act))


def _possible(state: _State) -> Iterator[_Act]:
    if state.come < state.count:
        yield _Act("comes", state.come, 5)
        if state.come:
            yield _Act("comes", state.come, 1)
    if state.running is not None:
        yield _Act("ends", state.running[1])
        if state.failed < state.unusual:
            yield _Act("fails", state.running[1])
    if state.cancelled < state.unusual:
        here = [*state.waiting, *([state.running] if state.running is not None else [])]
        for _, job in sorted(here, key=lambda entry: entry[1]):
            yield _Act("is cancelled", job)


# -- playing -----------------------------------------------------------------------------------------------------


class _Failure(Exception):
    """What a job raises that fails."""


@dataclass(slots=True)
class _Play:
    """One interleaving on one worker."""

    acts: Sequence[_Act]
    together: int | None
    state: _State
    running: list[int] = field(default_factory=list)
    ends: dict[int, asyncio.Event] = field(default_factory=dict)
    fails: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    submitters: dict[int, asyncio.Task[object]] = field(default_factory=dict)

    async def work(self, job: int) -> int:
        """Run until told to end."""
        self.running.append(job)
        try:
            await self.ends[job].wait()
            if job in self.fails:
                raise _Failure(f"job {job + 1}")
            return job
        finally:
            self.running.remove(job)

    async def play(self, make_worker: MakeSlotWorker) -> _Wrong | None:
        """Play the acts; return what is wrong first."""
        worker = make_worker()
        await worker.open()
        for number, act in enumerate(self.acts):
            self.do(worker, act)
            self.state = self.state.after(act)
            if number == self.together:
                continue
            for _ in range(_SETTLE):
                await asyncio.sleep(0)
            if self.together is not None and number == self.together + 1:
                self.state = self.state.with_running(self.running)
            wrong = self.wrong(self.acts[: number + 1])
            if wrong is not None:
                return _Wrong(
                    number + 1, wrong[0], f"{_words(self.acts[: number + 1], self.together)}: {wrong[1]}"
                )
        return None

    def do(self, worker: SlotAdapter, act: _Act) -> None:
        """Let an act happen."""
        job = act.job
        if act.verb == "comes":
            self.ends[job] = asyncio.Event()
            submitted = worker.submit(lambda: self.work(job), name=f"job {job + 1}", priority=act.priority)
            self.submitters[job] = asyncio.ensure_future(submitted)
        elif act.verb == "is cancelled":
            self.cancelled.add(job)
            self.submitters[job].cancel()
        else:
            if act.verb == "fails":
                self.fails.add(job)
            self.ends[job].set()

    def wrong(self, acts: Sequence[_Act]) -> tuple[SlotFinding, str] | None:
        """Compare the worker with the model."""
        expected = None if self.state.running is None else self.state.running[1]
        ghosts = [job for job in self.running if job in self.cancelled]
        if ghosts:
            return SlotFinding.GHOST, f"job {ghosts[0] + 1} runs, and nobody waits for it any more"
        if len(self.running) > 1:
            return SlotFinding.CROWDED, f"{_jobs(self.running)} run at a time on one slot"
        if expected is not None and not self.running:
            return SlotFinding.IDLE, f"job {expected + 1} has to run, and none runs"
        if expected is not None and self.running != [expected]:
            return (
                SlotFinding.ORDER,
                f"job {self.running[0] + 1} runs, and it is the turn of job {expected + 1}",
            )
        return next((wrong for act in acts if (wrong := self._wrong_end(act)) is not None), None)

    def _wrong_end(self, act: _Act) -> tuple[SlotFinding, str] | None:
        submitter = self.submitters[act.job]
        if act.verb == "comes":
            return None
        if not submitter.done():
            return SlotFinding.LOST, f"job {act.job + 1} has ended, and its submitter waits on"
        if act.verb == "is cancelled":
            good = submitter.cancelled()
        elif submitter.cancelled():
            good = False
        elif act.verb == "fails":
            good = isinstance(submitter.exception(), _Failure)
        else:
            good = submitter.exception() is None and submitter.result() == act.job
        return (
            None
            if good
            else (SlotFinding.WRONG_RESULT, f"the submitter of job {act.job + 1} got {_got(submitter)}")
        )


def _played(make_worker: MakeSlotWorker, acts: Sequence[_Act], together: int | None) -> _Wrong | None:
    last = max(act.job for act in acts) + 1
    play = _Play(acts, together, _State(last, unusual=2 * last))
    loop = VirtualLoop()
    # A worker's own tasks that die are seen by what does not happen any more.
    loop.set_exception_handler(lambda *_: None)
    try:
        return run_in(loop, play.play(make_worker))
    except Exception as error:  # noqa: BLE001  # whatever a worker raises where it should not
        return _Wrong(len(acts), SlotFinding.RAISES, f"{_words(acts, together)}: the worker raised {error!r}")


def _got(submitter: asyncio.Task[object]) -> str:
    if submitter.cancelled():
        return "cancelled"
    error = submitter.exception()
    return repr(submitter.result()) if error is None else repr(error)


def _jobs(jobs: Sequence[int]) -> str:
    return " and ".join(f"job {job + 1}" for job in jobs)


def _words(acts: Sequence[_Act], together: int | None) -> str:
    urgency = {1: " (urgent)", 5: ""}
    words = [f"job {act.job + 1}{urgency.get(act.priority, '')} {act.verb}" for act in acts]
    if together is not None and together + 1 < len(words):
        words[together : together + 2] = [f"{words[together]} and at once {words[together + 1]}"]
    return ", ".join(words)
