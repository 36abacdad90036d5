"""The scheduler: runs rounds of one step per runnable job, in a defined order and virtual time (behaviour 10).

The agenda orders scheduled actions by `(at, priority, seq)`: external events before steps, and otherwise in
the order of scheduling. Jobs within a round follow one of `ORDERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.clock import FOREVER
from statek_sim.runtime.execution.agenda import EVENT, MOST_IDLE_POLLS, STEP, Agenda, PollLoop
from statek_sim.runtime.execution.job_queue import Order, Rounds, valid_concurrency
from statek_sim.runtime.execution.job_step import StepsInFlight
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.suspension import Progress, Suspension
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.state.tool_loop import Timer
from statek_sim.sandbox.time_limit import timer_handled
from statek_sim.virtual_loop import running_loop

_RUNNABLE: Final = frozenset({JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED})


class Scheduler:
    """Runs job steps and scheduled actions until nothing is left to do."""

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
        self._rounds = Rounds(order, seed, self._can_run)
        self.limit(max_concurrency)
        self._services = services
        self._advance_clock = advance_clock
        self._agenda = Agenda()
        self._polling = PollLoop(services, self._agenda, idle_polls)
        self._until = FOREVER
        self._runs = 0
        self.tools = Suspension(
            services.budget,
            services.clock.now,
            self._plan_timer,
            self._advance,
            prints_apart=services.profile.prints_stay_apart,
        )
        self._in_flight = StepsInFlight(
            services, self._agenda, self.tools, max_steps, ended=self._step_ended, died=self.die
        )
        self.alive = True
        self.on_pass = self._polling.hooks

    def limit(self, max_concurrency: int) -> None:
        """Set the maximum number of steps in flight; raises `BadInput` unless it is 1 or more."""
        self._max_concurrency = valid_concurrency(max_concurrency)

    @property
    def loop_error(self) -> Exception | None:
        """The error that ended the worker's loop; None after a restart."""
        return self._polling.error

    @property
    def passing(self) -> bool:
        """Whether the worker is between steps: it wakes up jobs, loops create jobs, or a step is about to start."""
        return self._polling.passing or self._in_flight.beginning

    # -- runnable jobs -----------------------------------------------------------------------------------------

    def enter(self, job: Job) -> None:
        """Add a new job."""
        self._rounds.enter(job)
        self.offer(job)

    def offer(self, job: Job) -> None:
        """Record that `job` may have become runnable; it is checked after the current action."""
        if self.alive and job.id not in self._in_flight:
            self._rounds.offer(job)

    def _take_in(self, *, as_offered: bool = False) -> None:
        """Queue the recorded jobs that are runnable, unless an awaited tool has finished: its job continues first."""
        if self._rounds.offered and not self.tools.returning:
            self._rounds.take_in(self._in_flight, None if as_offered else self._services.waiting.rank)

    def _can_run(self, job: Job) -> bool:
        status = job.life.status
        if status not in _RUNNABLE:
            return False
        waits_in_warmup = status is JobStatus.WARMING_UP and job.awaited_result is not None
        if waits_in_warmup and self._services.profile.waiting_job_is_dormant:
            return False
        return self._rounds.knows(job)

    def choose_by(self, choose: Callable[[Sequence[Job]], int]) -> None:
        """Set the function that chooses the next job in a round.

        The function takes the ready jobs and returns an index.
        """
        self._rounds.choose = choose

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`, before any steps due at the same time."""
        self._agenda.add(when, EVENT, action)

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, until: float) -> bool:
        """Run until nothing is runnable or scheduled; return False if the time limit `until` was reached first.

        Raises `StoppedInTool` if a job is awaiting an async tool at virtual second `until`.
        """
        self._polling.something_happens()
        self._until = until
        self.tools.begin_run()
        self._runs += 1
        try:
            # The caller may be inside a running event loop.
            with timer_handled(), running_loop(None):
                self._take_in()
                while (progress := self._advance_or_fail()) is Progress.MADE:
                    pass
        finally:
            self._runs -= 1
        return progress is Progress.NOTHING_LEFT

    def _advance_or_fail(self) -> Progress:
        progress = self._advance()
        self.tools.raise_failure()
        return progress

    def _advance(self) -> Progress:
        """Perform the next runnable step or due action."""
        self.tools.settle()
        if self._step_ready() or self._begin_pass():
            return Progress.MADE
        if self._agenda.next_at is None and not (self.alive and self._polling.poll_again()):
            return Progress.NOTHING_LEFT
        if (self._agenda.next_at or 0.0) > self._until:
            self._advance_clock(max(self._until, self._services.clock.now()))
            return Progress.TIME_IS_UP
        due = self._agenda.take()
        self._advance_clock(max(due.at, self._services.clock.now()))
        due.action()
        self._take_in()
        return Progress.MADE

    # -- async tools -----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether `run` is active, so that virtual time can pass."""
        return self._runs > 0

    def _plan_timer(self, timer: Timer) -> None:
        self._agenda.add(timer.when(), STEP, lambda: self.tools.fire(timer), timer)

    def block(self, seconds: float) -> None:
        """Advance virtual time while the process is blocked, as in `time.sleep`. Only external events happen."""
        process, end = self._in_flight.process, self._services.clock.now() + seconds
        while self._in_flight.process == process:
            due = self._agenda.next_event(end)
            to = end if due is None else due.at
            self._advance_clock(max(to, self._services.clock.now()))
            if due is None:
                return
            self._agenda.strike(due)
            due.action()
        raise Suspension.killed(current_execution(), "killed")

    def _step_ready(self) -> bool:
        """Start the next step in this round; return False if there is none."""
        if not self.alive or len(self._in_flight) >= self._max_concurrency:
            return False
        job = self._rounds.take()
        if job is None:
            return False
        if self._can_run(job):
            self._polling.something_happens()
            self.tools.step_begins()
            self._in_flight.begin(job)
        self._take_in()
        return True

    def _begin_pass(self) -> bool:
        """Wake up jobs whose future is ready, let loops create jobs, and open the next round.

        Return False if the round has no jobs or no step can start.
        """
        if not self.alive:
            return False
        # Jobs whose step ended while a tool was about to return are not queued yet.
        self._take_in()
        death = self._polling.begin(self.offer, lambda: self._max_concurrency - len(self._in_flight))
        if death is not None:
            self.die(death)
            return False
        self._take_in(as_offered=True)
        return len(self._in_flight) < self._max_concurrency and self._rounds.open()

    def _step_ended(self, job: Job, begun: int) -> None:
        self._rounds.step_ended(job, begun)
        if job in self._services.waiting and job.life.status is JobStatus.WARMING_UP:
            if not self._services.profile.waiting_job_is_dormant:
                again = self._services.profile.warmup_wait_pass_seconds
                self._in_flight.later(again, lambda: self.offer(job))
            return
        self._services.waiting.forget(job)
        self.offer(job)

    # -- the worker process ------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """Kill the worker process: steps in flight are lost, and no job runs until `restart`."""
        self.alive = False
        self._forget(reason)
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", reason))

    def restart(self, jobs: list[Job]) -> None:
        """Start a new worker process on the same state; every runnable job restarts its pending work.

        If the old process is still alive, it is killed first and loses its steps in flight.
        """
        self._forget("restarted")
        self.alive = True
        self._polling.error = None
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", "restarted"))
        for job in jobs:
            job.keeping.drop()
            self._open(job)
        self._services.waiting.check_all()
        for job in jobs:
            self.offer(job)

    def _open(self, job: Job) -> None:
        """Register a job that was created, or began to wait, just before the previous process died."""
        if not self._rounds.knows(job):
            self._rounds.enter(job)
        waits = (
            job.life.status in (JobStatus.SUSPENDED, JobStatus.WARMING_UP) and job.awaited_result is not None
        )
        if waits and job not in self._services.waiting:
            self._services.waiting.add(job)

    def _forget(self, reason: str) -> None:
        """Discard the worker process's state when it ends."""
        self._in_flight.end_process()
        self.tools.die(reason)
        self._in_flight.lose()
        self._agenda.forget_steps()
        self._rounds.clear()

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process, without steps in flight."""
        return {"alive": self.alive, "rounds": self._rounds.saved(), "flights": self._in_flight.saved()}

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Restore the state saved by another process."""
        self.alive = saved["alive"]
        self._rounds.resume(saved["rounds"])
        self._in_flight.resume(saved["flights"], jobs)

    def close(self) -> None:
        """Release unfinished async tools; the scheduler cannot run again."""
        self.tools.close()
