"""Which job runs next: rounds of one step per runnable job, in an explicit order, in virtual time (behaviour 10).

The agenda orders future things by `(at, priority, seq)`: external events before steps, then first come, first
served. Within a round the order of jobs is one of `ORDERS`.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from statek_sim import trace as events
from statek_sim.errors import BadInput, Livelock, RunawayJob, StatekSimError
from statek_sim.harness.limits import MOST_ESCAPES
from statek_sim.runtime.execution.worker import worker_step
from statek_sim.runtime.jobs.current import reset_job, set_job
from statek_sim.runtime.state.containment import Escaped, WorkerKilled
from statek_sim.runtime.state.status import JobStatus

if TYPE_CHECKING:
    from statek_sim.runtime.execution.services import Services
    from statek_sim.runtime.execution.step import Step
    from statek_sim.runtime.jobs.job import Job

Order = Literal["fifo", "newest", "shuffled"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)
"""fifo: as they became runnable; newest: latest created first, as dbzero was seen to do; shuffled: by the seed."""

PASS_SECONDS: Final = 0.3
"""Virtual seconds between two passes of an idle loop over futures that can only be asked (the loop's sleep)."""

MOST_IDLE_POLLS: Final = 12_000
"""How often waiting jobs are asked while nothing else happens: one hour of virtual time."""

_RUNNABLE: Final = frozenset({JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED})
_EVENT, _STEP = 0, 1


@dataclass(frozen=True, order=True, slots=True)
class Due:
    """One agenda entry; `seq` makes equal entries come out in the order they went in."""

    at: float
    priority: int
    seq: int
    action: Callable[[], None] = field(compare=False)


class Scheduler:
    """Runs jobs and due events until nothing is left to do."""

    def __init__(
        self,
        services: Services,
        advance_clock: Callable[[float], None],
        *,
        order: Order,
        max_concurrency: int,
        seed: int,
        max_steps: int,
        idle_polls: int = MOST_IDLE_POLLS,
    ) -> None:
        if order not in ORDERS:
            raise BadInput(f"order {order!r} is unknown; expected one of: {', '.join(ORDERS)}")
        if max_concurrency < 1:
            raise BadInput(f"max_concurrency must be at least 1, got {max_concurrency!r}")
        self._services = services
        self._advance_clock = advance_clock
        self._order = order
        self._max_concurrency = max_concurrency
        self._max_steps = max_steps
        self._most_idle_polls = idle_polls
        self._random = random.Random(seed)
        self._seq = 0
        self._agenda: list[Due] = []
        self._ready: list[tuple[int, float, int, Job]] = []
        self._queued: set[str] = set()
        self._offered: dict[str, Job] = {}
        self._in_flight: dict[str, tuple[Job, Step]] = {}
        self._created: dict[str, int] = {}
        self._round = 0
        self._idle_polls = 0
        self._escapes: dict[str, int] = {}
        self._process = 0
        self.alive = True
        self.on_pass: list[Callable[[int], None]] = []
        """Called at the start of each pass with the free capacity: agent loops create jobs here."""

    # -- what may run ------------------------------------------------------------------------------------------

    def enter(self, job: Job) -> None:
        """Take a new job in."""
        self._created[job.id] = len(self._created)
        self.offer(job)

    def offer(self, job: Job) -> None:
        """Note that `job` may have become able to run; what is happening now is let end first."""
        if self.alive and job.id not in self._in_flight:
            self._offered[job.id] = job

    def _take_in(self, *, last: Job | None = None, as_offered: bool = False) -> None:
        """Queue what can run for the next round: by age, as STATEK's loop finds jobs, whichever became able first.

        Jobs that wait come before others, oldest wait first, and `last`, whose own step has just ended, after them.
        """
        if not self._offered:
            return
        offered, self._offered = list(self._offered.values()), {}
        if not as_offered:
            rank = self._services.waiting.rank
            offered.sort(key=lambda job: (job is last, rank(job), self._created.get(job.id, 0)))
        for job in offered:
            if job.id not in self._queued and job.id not in self._in_flight and self._can_run(job):
                self._seq += 1
                self._queued.add(job.id)
                heapq.heappush(self._ready, (self._round + 1, self._tie(job), self._seq, job))

    def _can_run(self, job: Job) -> bool:
        waits_in_warmup = job.status is JobStatus.WARMING_UP and job.awaited_result is not None
        if waits_in_warmup and self._services.profile.waiting_job_is_dormant:
            return False
        return job.status in _RUNNABLE and job.id in self._created

    def _tie(self, job: Job) -> float:
        if self._order == "newest":
            return -self._created[job.id]
        return self._random.random() if self._order == "shuffled" else 0.0

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, before any step that is due then."""
        self._push(when, _EVENT, action)

    def _push(self, when: float, priority: int, action: Callable[[], None]) -> None:
        self._seq += 1
        heapq.heappush(self._agenda, Due(when, priority, self._seq, action))

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, until: float) -> bool:
        """Run until nothing is runnable or due, or `until` is reached; return whether everything settled."""
        self._idle_polls = 0
        self._take_in()
        while True:
            if self._step_ready() or self._begin_pass():
                continue
            if not self._agenda and not self._poll_again():
                return True
            if self._agenda[0].at > until:
                self._advance_clock(max(until, self._services.clock.now()))
                return False
            due = heapq.heappop(self._agenda)
            self._advance_clock(max(due.at, self._services.clock.now()))
            due.action()
            self._take_in()

    def _poll_again(self) -> bool:
        """Let a little time pass for futures that can only be asked; return whether there are any worth asking.

        Their conditions may depend on the time. After a while in which nothing else happens they count as waiting
        for ever.
        """
        if not self.alive or not self._services.waiting.polls or self._idle_polls >= self._most_idle_polls:
            return False
        self._idle_polls += 1
        self._push(self._services.clock.now() + PASS_SECONDS, _STEP, _nothing)
        return True

    def _step_ready(self) -> bool:
        """Start the next step of this round; return whether there was one."""
        if not self.alive or not self._ready or len(self._in_flight) >= self._max_concurrency:
            return False
        if self._ready[0][0] > self._round:
            return False
        job = heapq.heappop(self._ready)[3]
        self._queued.discard(job.id)
        if self._can_run(job):
            self._begin_step(job)
        self._take_in(last=job)
        return True

    def _asks_about(self, job: Job) -> bool:
        """Return whether the loop asks the future that the job waits for.

        Waiting in warmup before 1.3.2 is no wait at all: the loop just enters the block again.
        """
        return self._services.profile.waiting_job_is_dormant or job.status is JobStatus.SUSPENDED

    def _begin_pass(self) -> bool:
        """Wake jobs whose future is ready, let loops create jobs, open the next round if it has jobs."""
        if not self.alive:
            return False
        try:
            for job in self._services.waiting.candidates():
                future = job.awaited_result
                if future is not None and self._asks_about(job) and future.check_condition():
                    self._services.release(job)
                    self.offer(job)
            for hook in self.on_pass:
                hook(self._max_concurrency - len(self._in_flight))
        except StatekSimError:
            raise
        except Exception as error:  # noqa: BLE001  # a condition or a queue size: the user's code
            self.die(f"the worker loop died of {type(error).__name__}: {error}")
            return False
        self._take_in(as_offered=True)
        if not self._ready or len(self._in_flight) >= self._max_concurrency:
            return False
        self._round = self._ready[0][0]
        return True

    def _begin_step(self, job: Job) -> None:
        job.steps += 1
        self._idle_polls = 0
        if job.steps > self._max_steps:
            raise RunawayJob(
                f"job {job.id!r} wants step {job.steps}; one run allows {self._max_steps} per job. "
                + (
                    "It waits in warmup, where this version of STATEK enters the block again without a pause: let it "
                    "wait in a reply, or for a shorter time"
                    if job.awaited_result is not None and job.status is JobStatus.WARMING_UP
                    else "Give it a limit, the run an end in time (until), or raise max_steps"
                )
            )
        self._services.trace.add(events.StepStarted(self._services.clock.now(), job.id, job.steps))
        self._in_flight[job.id] = (job, worker_step(self._services, job))
        self._continue(job)

    def _continue(self, job: Job) -> None:
        """Let a step run on until it waits for time to pass or ends."""
        entry = self._in_flight.get(job.id)
        if entry is None:
            return
        token = set_job(job)
        try:
            pause = next(entry[1])
        except StopIteration:
            self._escapes.pop(job.id, None)
            self._end_step(job)
            return
        except Escaped as escape:
            self._note_escape(job, escape)
            self._end_step(job)
            return
        except WorkerKilled as death:
            self.die(str(death))
            return
        finally:
            reset_job(token)
        self._push(self._services.clock.now() + pause, _STEP, lambda: self._resume(job, entry[1]))

    def _resume(self, job: Job, step: Step) -> None:
        """Continue a paused step, unless its worker died meanwhile."""
        if self._in_flight.get(job.id, (None, None))[1] is step:
            self._continue(job)
            self._take_in(last=job)

    def _note_escape(self, job: Job, escape: Escaped) -> None:
        """Count steps in a row that nothing will come of, and end the run when there are too many."""
        times = self._escapes[job.id] = self._escapes.get(job.id, 0) + 1
        if times > MOST_ESCAPES:
            raise Livelock(f"job {job.id!r} repeats the same step forever: {escape}") from escape

    def _end_step(self, job: Job) -> None:
        del self._in_flight[job.id]
        if job in self._services.waiting and job.status is JobStatus.WARMING_UP:
            if not self._services.profile.waiting_job_is_dormant:
                self._look_again(job)
            return
        self._services.waiting.forget(job)
        self.offer(job)

    def _look_again(self, job: Job) -> None:
        """Offer `job` at the next pass of this worker process."""
        process = self._process

        def again() -> None:
            if self._process == process:
                self.offer(job)

        pause = self._services.profile.warmup_wait_pass_seconds
        self._push(self._services.clock.now() + pause, _STEP, again)

    # -- the worker process ------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """The worker process dies: steps in flight are lost, nothing runs until `restart`."""
        self.alive = False
        self._forget()
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", reason))

    def restart(self, jobs: list[Job]) -> None:
        """A new worker process opens the same state: every runnable job starts its pending work again.

        A process that is still alive ends first, and its steps in flight are lost with it.
        """
        self._forget()
        self.alive = True
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", "restarted"))
        self._services.waiting.stir_all()
        for job in jobs:
            self.offer(job)

    def _forget(self) -> None:
        """Lose what only the process knew."""
        self._process += 1
        lost, self._in_flight = self._in_flight, {}
        for job, step in lost.values():
            step.close()
            # The time that its tools had still to sleep died with the process.
            job.slept = 0.0
            job.history.again()
        self._agenda = [due for due in self._agenda if due.priority != _STEP]
        heapq.heapify(self._agenda)
        self._ready.clear()
        self._queued.clear()
        self._offered.clear()
        self._escapes.clear()


def _nothing() -> None:
    """Only let time pass."""
