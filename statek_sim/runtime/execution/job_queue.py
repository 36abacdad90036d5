"""The queue of runnable jobs, and the jobs that are waiting for a future.

Jobs are queued in rounds, in the order in which STATEK's loop finds them. STATEK checks every waiting job's
condition on every pass. Here, a future with known signals is checked only after a signal has fired; only
futures with unknown dependencies are polled on every pass.
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
"""The order of jobs within a round.

`fifo`: the order in which they became runnable; `newest`: newest job first, as observed in dbzero;
`shuffled`: a random order that depends on the seed.
"""


def valid_concurrency(most: int) -> int:
    """Return this maximum number of concurrent steps; raises `BadInput` unless it is 1 or more."""
    if most < 1:
        raise BadInput(f"expected max_concurrency to be 1 or more, got {most!r}")
    return most


class Named(Protocol):
    """The part of a job that `Rounds` uses."""

    @property
    def id(self) -> str:
        """The job's unique id."""


J = TypeVar("J", bound=Named)


class Rounds(Generic[J]):
    """The queue of runnable jobs. Offered jobs are queued for the next round; `seed` determines the shuffled order."""

    def __init__(self, order: Order, seed: int, can_run: Callable[[J], bool]) -> None:
        if order not in ORDERS:
            raise BadInput(f"unknown order {order!r}; expected one of: {', '.join(ORDERS)}")
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
        """Chooses one of several ready jobs in a round and returns its index. If None, the first job is chosen."""

    def enter(self, job: J) -> None:
        """Add a new job."""
        self._created[job.id] = len(self._created)

    def knows(self, job: J) -> bool:
        """Return whether `job` was added with `enter`."""
        return job.id in self._created

    def offer(self, job: J) -> None:
        """Record that `job` may have become runnable."""
        self._offered[job.id] = job

    def step_ended(self, job: J, begun: int) -> None:
        """Record that the job's step number `begun` has ended."""
        self._ended[job.id] = begun

    @property
    def offered(self) -> bool:
        """Whether any offered jobs are not queued yet."""
        return bool(self._offered)

    def take_in(self, in_flight: Container[str], rank: Callable[[J], float] | None) -> None:
        """Queue the offered jobs that are runnable for the next round.

        If `rank` is given, jobs are in the order in which STATEK's loop finds them: first waiting jobs by
        `rank`, then other jobs by creation, then jobs whose step has just ended, by the step's start.
        Otherwise, they are in the order in which they were offered.
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
        """The random generator. It is created on first use, because seeding takes as long as a job step."""
        return random.Random(self._seed)

    def _draw(self) -> float:
        self._drawn += 1
        return self._random.random()

    def take(self) -> J | None:
        """Remove and return the next job in this round, or None."""
        if not self._ready or self._ready[0][0] > self._round:
            return None
        job = heapq.heappop(self._ready)[3] if self.choose is None else self._chosen(self.choose)
        self._queued.discard(job.id)
        return job

    def _chosen(self, choose: Callable[[Sequence[J]], int]) -> J:
        """Remove and return the job selected by `choose`. If only one job is ready, `choose` is not called."""
        open_ = sorted(entry for entry in self._ready if entry[0] <= self._round)
        picked = open_[choose([entry[3] for entry in open_])] if len(open_) > 1 else open_[0]
        self._ready.remove(picked)
        heapq.heapify(self._ready)
        return picked[3]

    def open(self) -> bool:
        """Begin the next round; return False if it has no jobs."""
        if not self._ready:
            return False
        self._round = self._ready[0][0]
        return True

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process: the current rounds and the added jobs."""
        return {"seq": self._seq, "round": self._round, "drawn": self._drawn, "created": [*self._created]}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state saved by another process."""
        self._seq, self._round = saved["seq"], saved["round"]
        self._created = {name: number for number, name in enumerate(saved["created"])}
        for _ in range(saved["drawn"]):
            self._draw()

    def clear(self) -> None:
        """Discard all queued and offered jobs, because the worker process ended."""
        self._ready.clear()
        self._queued.clear()
        self._offered.clear()
        self._ended.clear()


class WaitingRoom:
    """The jobs that are waiting for a future, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._polled: dict[str, Job] = {}
        self._to_check: dict[str, Job] = {}
        self._since: dict[str, int] = {}
        self._entering: dict[str, Job] = {}
        self._waits = 0

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
            signal.listen(job.id, self._mark_to_check)
        # After a failed unpacking, the future may already be ready, so that no signal will fire.
        self._to_check[job.id] = job

    def remove(self, job: Job) -> None:
        """Stop waiting, if `job` is waiting.

        If the job waits again before `forget`, its wait counts as uninterrupted.
        """
        if self._jobs.pop(job.id, None) is None:
            return
        self._polled.pop(job.id, None)
        self._to_check.pop(job.id, None)
        future = job.awaited_result
        for signal in (future.signals() if future is not None else None) or ():
            signal.forget(job.id)

    def enter_again(self, job: Job) -> None:
        """End the wait of a job that reruns its block; if the job is in warmup, `jobs` still lists it."""
        if job.id in self._jobs and job.life.status is JobStatus.WARMING_UP:
            self._entering[job.id] = job
        self.remove(job)

    def forget(self, job: Job) -> None:
        """Make the next wait of `job` count as a new wait, unless the job is waiting now."""
        self._entering.pop(job.id, None)
        if job.id not in self._jobs:
            self._since.pop(job.id, None)

    def _mark_to_check(self, job_id: str) -> None:
        self._to_check[job_id] = self._jobs[job_id]

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process: the waiting jobs and their order."""
        return {
            "jobs": [*self._jobs],
            "stirred": [*self._to_check],
            "entering": [*self._entering],
            "since": [*self._since.items()],
            "waits": self._waits,
        }

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Restore the waits saved by another process."""
        for name in saved["jobs"]:
            self.add(jobs[name])
        self._entering = {name: jobs[name] for name in saved["entering"]}
        self._to_check = {name: jobs[name] for name in saved["stirred"]}
        self._since, self._waits = dict(saved["since"]), saved["waits"]

    def rank(self, job: Job) -> float:
        """Return a job's position among the waiting jobs, longest wait first; infinity for other jobs."""
        return self._since[job.id] if job.id in self._jobs else float("inf")

    @property
    def polls(self) -> bool:
        """Whether any job is waiting for a future that must be polled."""
        return bool(self._polled)

    def check_all(self) -> None:
        """Make the next pass check every waiting job's condition, as a new worker process does."""
        self._to_check = dict(self._jobs)

    def candidates(self) -> list[Job]:
        """Return the jobs whose condition may have changed since the last call, longest wait first."""
        if not self._to_check and not self._polled:
            return []
        found = list({**self._polled, **self._to_check}.values())
        self._to_check.clear()
        return sorted(found, key=self.rank)

    def jobs(self) -> list[Job]:
        """Return all waiting jobs, longest wait first, including jobs that rerun their warmup block."""
        entering = {
            name: job for name, job in self._entering.items() if job.life.status is JobStatus.WARMING_UP
        }
        return [*{**self._jobs, **entering}.values()]
