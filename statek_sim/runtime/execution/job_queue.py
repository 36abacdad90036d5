"""Decides which job steps next and which jobs wait.

Jobs are queued in rounds, in the order in which STATEK's loop finds them. STATEK checks every waiting job's condition
on every pass. Here a job whose future knows its signals costs nothing until one fires; only futures with unknown
dependencies are polled on every pass.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, get_args

from statek_sim.errors import BadInput
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus

Order = Literal["fifo", "newest", "shuffled"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)
"""fifo: in the order of becoming runnable; newest: latest created first, as observed in dbzero; shuffled: by the seed.
"""


class Named(Protocol):
    """A job by its id."""

    @property
    def id(self) -> str:
        """The job's unique name."""


J = TypeVar("J", bound=Named)


class Rounds(Generic[J]):
    """Jobs that may run: offered, then queued for the next round. Random draws use `seed`."""

    def __init__(self, order: Order, seed: int, can_run: Callable[[J], bool]) -> None:
        if order not in ORDERS:
            raise BadInput(f"order {order!r} is unknown; expected one of: {', '.join(ORDERS)}")
        self._order = order
        self._seed = seed
        self._drawn = 0
        self._can_run = can_run
        self._seq = 0
        self._round = 0
        self._ready: list[tuple[int, float, int, J]] = []
        self._queued: set[str] = set()
        self._offered: dict[str, J] = {}
        self._ended: dict[str, int] = {}
        self._created: dict[str, int] = {}
        self.choose: Callable[[Sequence[J]], int] | None = None
        """Chooses which ready job of this round steps next; None: the first."""

    def enter(self, job: J) -> None:
        """Add a new job."""
        self._created[job.id] = len(self._created)

    def knows(self, job: J) -> bool:
        """Return whether `job` was added."""
        return job.id in self._created

    def offer(self, job: J) -> None:
        """Record that `job` may have become runnable."""
        self._offered[job.id] = job

    def step_ended(self, job: J, begun: int) -> None:
        """Record that a step of `job`, the `begun`-th of all, has ended: it is queued after those that wait."""
        self._ended[job.id] = begun

    @property
    def offered(self) -> bool:
        """Whether there are offered jobs to queue."""
        return bool(self._offered)

    def take_in(self, in_flight: Container[str], rank: Callable[[J], float] | None) -> None:
        """Queue runnable jobs for the next round, in order of age.

        This is the order in which STATEK's loop finds them, not the order in which they became runnable. Waiting jobs
        come before others, oldest wait first (`rank`), and jobs whose own steps have just ended after them, in the
        order of the steps' starts. Without `rank` they are queued in the order of the offers.
        """
        offered, self._offered = list(self._offered.values()), {}
        ended, self._ended = self._ended, {}
        if rank is not None and len(offered) > 1:
            offered.sort(key=lambda job: (ended.get(job.id, 0), rank(job), self._created.get(job.id, 0)))
        for job in offered:
            if job.id not in self._queued and job.id not in in_flight and self._can_run(job):
                self._seq += 1
                self._queued.add(job.id)
                heapq.heappush(self._ready, (self._round + 1, self._tie(job), self._seq, job))

    def _tie(self, job: J) -> float:
        if self._order == "newest":
            return -self._created[job.id]
        return self._draw() if self._order == "shuffled" else 0.0

    @cached_property
    def _random(self) -> random.Random:
        """The random generator, created on first use because seeding takes as long as a step."""
        return random.Random(self._seed)

    def _draw(self) -> float:
        self._drawn += 1
        return self._random.random()

    def take(self) -> J | None:
        """Return and remove the next job of this round, or None if there is none."""
        if not self._ready or self._ready[0][0] > self._round:
            return None
        job = heapq.heappop(self._ready)[3] if self.choose is None else self._chosen(self.choose)
        self._queued.discard(job.id)
        return job

    def _chosen(self, choose: Callable[[Sequence[J]], int]) -> J:
        """Return and remove the job that `choose` picks; it is called only if there is a choice."""
        open_ = sorted(entry for entry in self._ready if entry[0] <= self._round)
        picked = open_[choose([entry[3] for entry in open_])] if len(open_) > 1 else open_[0]
        self._ready.remove(picked)
        heapq.heapify(self._ready)
        return picked[3]

    def open(self) -> bool:
        """Open the next round if it has jobs."""
        if not self._ready:
            return False
        self._round = self._ready[0][0]
        return True

    def saved(self) -> dict[str, object]:
        """Return the state for a new process: the position in the rounds, and the added jobs."""
        return {"seq": self._seq, "round": self._round, "drawn": self._drawn, "created": [*self._created]}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Continue from where another process `saved` it."""
        self._seq, self._round = saved["seq"], saved["round"]
        self._created = {name: number for number, name in enumerate(saved["created"])}
        for _ in range(saved["drawn"]):
            self._draw()

    def clear(self) -> None:
        """Discard the state that dies with the process."""
        self._ready.clear()
        self._queued.clear()
        self._offered.clear()
        self._ended.clear()


class WaitingRoom:
    """Waiting jobs by id, in the order in which their waits began."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._polled: dict[str, Job] = {}
        self._stirred: dict[str, Job] = {}
        self._since: dict[str, int] = {}
        self._entering: dict[str, Job] = {}
        self._waits = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: Job) -> bool:
        return job.id in self._jobs

    def add(self, job: Job) -> None:
        """Start waiting for `job.awaited_result`."""
        self.remove(job)
        self._entering.pop(job.id, None)
        self._jobs[job.id] = job
        if job.id not in self._since:
            self._waits += 1
            self._since[job.id] = self._waits
        if job.awaited_result is None:
            return
        signals = job.awaited_result.signals()
        if signals is None:
            self._polled[job.id] = job
            return
        for signal in signals:
            signal.listen(job.id, self._stir)
        # The result may already be available after a wrong unpacking; then no signal will fire.
        self._stirred[job.id] = job

    def remove(self, job: Job) -> None:
        """Stop waiting; a job that waits again before `forget` counts as having waited all the time.

        Others are ignored.
        """
        if self._jobs.pop(job.id, None) is None:
            return
        self._polled.pop(job.id, None)
        self._stirred.pop(job.id, None)
        future = job.awaited_result
        for signal in (future.signals() if future is not None else None) or ():
            signal.forget(job.id)

    def enter_again(self, job: Job) -> None:
        """Stop waiting while the job reruns the code in which it waits: see `jobs`."""
        if job.id in self._jobs and job.life.status is JobStatus.WARMING_UP:
            self._entering[job.id] = job
        self.remove(job)

    def forget(self, job: Job) -> None:
        """Make the next wait of a job that does not wait count as new."""
        self._entering.pop(job.id, None)
        if job.id not in self._jobs:
            self._since.pop(job.id, None)

    def _stir(self, job_id: str) -> None:
        self._stirred[job_id] = self._jobs[job_id]

    def saved(self) -> dict[str, object]:
        """Return the waiting jobs, and since when."""
        return {
            "jobs": [*self._jobs],
            "stirred": [*self._stirred],
            "entering": [*self._entering],
            "since": [*self._since.items()],
            "waits": self._waits,
        }

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Let the same jobs wait as in the process that `saved` it."""
        for name in saved["jobs"]:
            self.add(jobs[name])
        self._entering = {name: jobs[name] for name in saved["entering"]}
        self._stirred = {name: jobs[name] for name in saved["stirred"]}
        self._since, self._waits = dict(saved["since"]), saved["waits"]

    def rank(self, job: Job) -> float:
        """Return a job's position among the waiting ones, oldest first; after all of them if it does not wait."""
        return self._since[job.id] if job.id in self._jobs else float("inf")

    @property
    def polls(self) -> bool:
        """Whether some job waits for a future that must be polled."""
        return bool(self._polled)

    def stir_all(self) -> None:
        """Check every waiting job's condition at the next pass, as a new worker process does."""
        self._stirred = dict(self._jobs)

    def candidates(self) -> list[Job]:
        """Return the jobs whose condition may have changed since the last call, oldest wait first."""
        if not self._stirred and not self._polled:
            return []
        found = list({**self._polled, **self._stirred}.values())
        self._stirred.clear()
        return sorted(found, key=self.rank)

    def jobs(self) -> list[Job]:
        """Return every waiting job, oldest wait first; one that reruns its warmup has not stopped waiting."""
        entering = {
            name: job for name, job in self._entering.items() if job.life.status is JobStatus.WARMING_UP
        }
        return [*{**self._jobs, **entering}.values()]
