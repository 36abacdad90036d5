"""STATEK's worker loop in virtual time: its own `job_worker` per step, its own review of waiting jobs per pass.

The loop of the package sleeps for real and takes jobs in the store's order, which is nobody's promise; here a round
of one step per runnable job, first come, first served (behaviour 10), in the order that the reference scheduler has.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import dbzero
from statek.executors import utils
from statek.executors.job import Job, JobStatus
from statek.executors.utils import job_worker, unsuspend_jobs

from statek_sim.backends.installed.virtual_time import STEP, VirtualTime, let_others_run
from statek_sim.harness.limits import MOST_ESCAPES, MOST_STEPS
from statek_sim.values import JSON

_RUNNABLE: Final = (JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED)


class Interrupted(BaseException):
    """The run cannot go on: the script does not fit, or the job never comes to rest."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class WorkerLoop:
    """Runs the jobs that `known()` names, in order of creation, until nothing is left to do.

    `dormant` and `pass_seconds` are the profile's: how a job is treated that waits in warmup.
    """

    def __init__(
        self,
        time: VirtualTime,
        known: Callable[[], dict[str, Any]],
        *,
        max_concurrency: int,
        dormant: bool,
        pass_seconds: float,
        order: str,
        seed: int,
    ) -> None:
        self._time = time
        self._known = known
        self._most = max_concurrency
        self._dormant = dormant
        self._pass_seconds = pass_seconds
        self._rounds = Rounds(order, seed, lambda name: list(known()).index(name))
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._waiting: list[str] = []
        self._busy: set[str] = set()
        self._escapes: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self.before_step: Callable[[str], None] = lambda _name: None
        self.on_death: Callable[[str], None] = lambda _reason: None
        self.on_pass: list[Callable[[int], None]] = []
        """Called at the start of each pass with the free capacity: agent loops create jobs here."""
        self.pause: Callable[[], float | None] = lambda: None
        self.died: str | None = None

    async def run(self, until: float) -> bool:
        """Run until nothing is runnable or due, or `until` is reached; return whether everything settled.

        `pause` may leave everything as it is there, and say until when to go on.
        """
        while True:
            if await self._step() or self._begin_pass():
                continue
            when = self._time.next_at
            if when is None:
                return True
            if when > until:
                later = self.pause()
                if later is None:
                    return False
                until = later
                continue
            self._time.do_next()
            await self._settle()

    # -- what may run ----------------------------------------------------------------------------------------------

    def offer(self, *, last: str | None = None) -> None:
        """Queue every job that became able to run; the one whose step just ended comes last."""
        jobs = self._known()
        waited = [name for name in self._waiting if name in jobs]
        for name in sorted((*waited, *(n for n in jobs if n not in waited)), key=lambda name: name == last):
            self._offer(name, jobs[name])
        self._waiting = [
            *(name for name in self._waiting if self._waits(jobs[name])),
            *(name for name in jobs if name not in self._waiting and self._waits(jobs[name])),
        ]

    def _offer(self, name: str, job: Any) -> None:
        held = name in self._rounds or name in self._flying or name in self._busy
        if not held and self.died is None and self._can_run(job):
            self._rounds.queue(name)

    def _can_run(self, job: Any) -> bool:
        return job.status in _RUNNABLE and not (self._dormant and self._waits(job))

    @staticmethod
    def _waits(job: Any) -> bool:
        return job.awaited_result is not None and job.status in (JobStatus.SUSPENDED, JobStatus.WARMING_UP)

    # -- running ---------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether steps are in flight."""
        return bool(self._flying)

    async def _step(self) -> bool:
        """Begin the next step of this round; return whether there was one."""
        if self.died is not None or len(self._flying) >= self._most:
            return False
        name = self._rounds.take()
        if name is None:
            return False
        job = self._known()[name]
        if not self._can_run(job):
            return True
        self.steps[name] = self.steps.get(name, 0) + 1
        if self.steps[name] > MOST_STEPS:
            raise Interrupted("RunawayJob", f"job {name!r} wants step {self.steps[name]}")
        self.before_step(name)
        self._flying[name] = asyncio.ensure_future(job_worker(asyncio.Semaphore(1), job))
        await self._settle()
        return True

    def _begin_pass(self) -> bool:
        """Let STATEK review its waiting jobs and open the next round if it has jobs."""
        if self.died is not None:
            return False
        try:
            jobs = self._known()
            with found_in_order({dbzero.uuid(jobs[name]): at for at, name in enumerate(self._waiting)}):
                unsuspend_jobs()
            for start_jobs in self.on_pass:
                start_jobs(self._most - len(self._flying))
        except Exception as error:  # noqa: BLE001  # a condition or a queue's size: the user's code
            self.die(f"the worker loop died of {type(error).__name__}: {error}")
            return False
        # STATEK's loop asks its store for runnable jobs here. The store updates the index of statuses when it is asked
        # for one that changed, so without this question it may not find a job that waits for the second time.
        any(True for _ in dbzero.find(Job, [JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED]))
        self.offer()
        return len(self._flying) < self._most and self._rounds.open()

    async def _settle(self) -> None:
        """Let tasks run until they wait for time to pass, and take in those that ended."""
        await let_others_run()
        for name in [name for name, task in self._flying.items() if task.done()]:
            task = self._flying.pop(name)
            self._look_at(name, task.exception())
            job = self._known()[name]
            if not self._dormant and job.status == JobStatus.WARMING_UP and self._waits(job):
                self._look_again(name)
            self.offer(last=name)
        self.offer()

    def _look_at(self, name: str, escaped: BaseException | None) -> None:
        if escaped is None:
            self._escapes[name] = 0
            return
        if isinstance(escaped, Interrupted):
            raise escaped
        self._escapes[name] = self._escapes.get(name, 0) + 1
        if self._escapes[name] > MOST_ESCAPES:
            reason = f"{type(escaped).__name__}: {escaped}"
            raise Interrupted("Livelock", f"job {name!r} repeats the same step forever: {reason}")

    def _look_again(self, name: str) -> None:
        self._busy.add(name)

        def again() -> None:
            self._busy.discard(name)
            self.offer()

        self._time.at(self._time.now + self._pass_seconds, again, priority=STEP)

    # -- the worker process ----------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """Stop working: steps in flight are lost."""
        self.died = reason
        self.on_death(reason)
        for task in self._flying.values():
            task.cancel()
        self._flying.clear()
        self._time.forget_steps()
        self._rounds.clear()

    def memory(self) -> JSON:
        """Return what the next process must know of this loop."""
        return {
            "steps": dict(self.steps),
            "waiting": list(self._waiting),
            "died": self.died,
            "random": self._rounds.memory(),
        }

    def remember(self, memory: Any) -> None:
        """Go on with the `memory` of the process before."""
        self.steps.update(memory["steps"])
        self._waiting = memory["waiting"]
        self.died = memory["died"]
        self._rounds.remember(memory["random"])

    def restart(self) -> None:
        """Begin to work: every runnable job starts its pending work again."""
        self.died = None
        self.offer()


def waiting_names(jobs: dict[str, Any]) -> Iterable[str]:
    """Return the names of jobs that wait for a future."""
    return (name for name, job in jobs.items() if WorkerLoop._waits(job))


class Rounds:
    """Names of jobs: queued, then in the round that is going on. `age` is a job's place in the order of creation."""

    def __init__(self, order: str, seed: int, age: Callable[[str], int]) -> None:
        self._order = order
        self._random = random.Random(seed)
        self._age = age
        self._queue: list[str] = []
        self._ties: dict[str, float] = {}
        self._round: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._queue or name in self._round

    def queue(self, name: str) -> None:
        """Queue a job for the next round."""
        self._queue.append(name)
        self._ties[name] = self._tie(name)

    def _tie(self, name: str) -> float:
        """Return a job's place in the next round, drawn as the reference runtime draws it."""
        if self._order == "newest":
            return -self._age(name)
        return self._random.random() if self._order == "shuffled" else 0.0

    def take(self) -> str | None:
        """Take the next job of this round, or None when there is none."""
        return self._round.pop(0) if self._round else None

    def open(self) -> bool:
        """Open the next round if it has jobs."""
        if not self._queue:
            return False
        self._round, self._queue = sorted(self._queue, key=self._ties.__getitem__), []
        return True

    def clear(self) -> None:
        """Lose what only the process knew."""
        self._queue.clear()
        self._round.clear()

    def memory(self) -> JSON:
        """Return where the draws are."""
        version, state, gauss = self._random.getstate()
        return [version, list(state), gauss]

    def remember(self, memory: Any) -> None:
        """Go on drawing from `memory`."""
        version, state, gauss = memory
        self._random.setstate((version, tuple(state), gauss))


@contextmanager
def found_in_order(places: Mapping[str, int]) -> Iterator[None]:
    """Have STATEK find stored objects by their `places`, others last; the store's own order is nobody's promise."""

    class Store:
        """The store, with an order to what it finds."""

        def __getattr__(self, name: str) -> Any:
            return getattr(dbzero, name)

        def find(self, *query: Any) -> list[Any]:
            """Return what the store finds."""
            return sorted(
                dbzero.find(*query), key=lambda stored: places.get(dbzero.uuid(stored), len(places))
            )

    utils.db0 = Store()
    try:
        yield
    finally:
        utils.db0 = dbzero
