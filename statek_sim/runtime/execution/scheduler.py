"""Which job runs next: rounds of one step per runnable job, in an explicit order, in virtual time (behaviour 10).

The agenda orders future things by `(at, priority, seq)`: external events before steps, then first come, first
served. Within a round the order of jobs is one of `ORDERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import GEN_RUNNING, getgeneratorstate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from statek_sim import trace as events
from statek_sim.clock import FOREVER
from statek_sim.errors import BadInput, Livelock, RunawayJob, StatekSimError
from statek_sim.harness.limits import MOST_ESCAPES
from statek_sim.runtime.execution.agenda import EVENT, STEP, Agenda
from statek_sim.runtime.execution.rounds import Order, Rounds
from statek_sim.runtime.execution.separate_stack import SeparateStack
from statek_sim.runtime.execution.suspension import Progress, Suspension
from statek_sim.runtime.execution.worker import worker_step
from statek_sim.runtime.jobs.current import reset_job, set_job
from statek_sim.runtime.state.containment import Escaped, WorkerKilled
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.state.tool_loop import Running, Timer, in_charge

if TYPE_CHECKING:
    from statek_sim.runtime.execution.services import Services
    from statek_sim.runtime.execution.step import Step
    from statek_sim.runtime.jobs.job import Job

PASS_SECONDS: Final = 0.3
"""Virtual seconds between two passes of an idle loop over futures that can only be asked (the loop's sleep)."""

MOST_IDLE_POLLS: Final = 12_000
"""How often waiting jobs are asked while nothing else happens: one hour of virtual time."""

_RUNNABLE: Final = frozenset({JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED})


class _Flight(NamedTuple):
    """A step that has begun and not ended; `begun` numbers them."""

    job: Job
    step: Step
    begun: int


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
        self._rounds = Rounds(order, seed, self._can_run)
        if max_concurrency < 1:
            raise BadInput(f"max_concurrency must be at least 1, got {max_concurrency!r}")
        self._services = services
        self._advance_clock = advance_clock
        self._max_concurrency = max_concurrency
        self._max_steps = max_steps
        self._most_idle_polls = idle_polls
        self._agenda = Agenda()
        self._in_flight: dict[str, _Flight] = {}
        self._begun = 0
        self._idle_polls = 0
        self._escapes: dict[str, int] = {}
        self._process = 0
        self._until = FOREVER
        self._runs = 0
        self._unwinding = False
        self._stack: SeparateStack[bool] | None = None
        self._tools = Suspension(
            services.budget,
            services.clock.now,
            self._plan_timer,
            self._advance,
            self._pause,
            prints_apart=services.profile.prints_stay_apart,
        )
        self.alive = True
        self.on_pass: list[Callable[[int], None]] = []
        """Called at the start of each pass with the free capacity: agent loops create jobs here."""

    # -- what may run ------------------------------------------------------------------------------------------

    def enter(self, job: Job) -> None:
        """Take a new job in."""
        self._rounds.enter(job)
        self.offer(job)

    def offer(self, job: Job) -> None:
        """Note that `job` may have become able to run; what is happening now is let end first."""
        if self.alive and job.id not in self._in_flight:
            self._rounds.offer(job)

    def _take_in(self, *, as_offered: bool = False) -> None:
        """Queue what can run. Nothing while a tool has ended that is still waited for: its job goes on first."""
        if self._rounds.offered and not self._tools.returning:
            self._rounds.take_in(self._in_flight, None if as_offered else self._services.waiting.rank)

    def _can_run(self, job: Job) -> bool:
        waits_in_warmup = job.status is JobStatus.WARMING_UP and job.awaited_result is not None
        if waits_in_warmup and self._services.profile.waiting_job_is_dormant:
            return False
        return job.status in _RUNNABLE and self._rounds.knows(job)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, before any step that is due then."""
        self._agenda.add(when, EVENT, action)

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, until: float) -> bool:
        """Run until nothing is runnable or due, or `until` is reached; return whether everything settled."""
        self._idle_polls = 0
        self._until = until
        self._tools.begin_run()
        if self._stack is None:
            if until >= FOREVER:
                return self._run()
            self._stack = SeparateStack(self._run)
        return self._go_on()

    def _go_on(self) -> bool:
        """Go on on a stack of its own: a run with an end in time may have to stop while a tool is waited for."""
        assert self._stack is not None
        settled = False
        try:
            # Whoever runs this may have a running loop of his own.
            with in_charge(None):
                settled = bool(self._stack.go_on())
        finally:
            if self._stack.ended:
                self._stack = None
        return settled

    def _run(self) -> bool:
        self._runs += 1
        with in_charge(None):
            return self._run_on()

    def _run_on(self) -> bool:
        try:
            self._take_in()
            while not self._unwinding:
                progress = self._advance()
                self._tools.raise_failure()
                if progress is not Progress.MADE:
                    return progress is Progress.NOTHING_LEFT
            return False
        finally:
            self._runs -= 1

    def _advance(self) -> Progress:
        """Let the next thing happen that is runnable or due."""
        self._tools.settle()
        if self._step_ready() or self._begin_pass():
            return Progress.MADE
        if self._agenda.next_at is None and not self._poll_again():
            return Progress.NOTHING_LEFT
        if (self._agenda.next_at or 0.0) > self._until:
            self._advance_clock(max(self._until, self._services.clock.now()))
            return Progress.TIME_IS_UP
        due = self._agenda.take()
        self._advance_clock(max(due.at, self._services.clock.now()))
        due.action()
        self._take_in()
        return Progress.MADE

    def _pause(self) -> bool:
        """Return to whoever runs this, in the middle of waiting for an async tool; False if that cannot be."""
        if self._stack is None or not self._stack.is_current():
            return False
        self._stack.pause()
        return True

    # -- async tools -----------------------------------------------------------------------------------------------

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Wait for an async tool of `job`, which is in the middle of its step."""
        return self._tools.finish(job, coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Begin to run what a step awaits between two of its parts."""
        return self._tools.start(coroutine)

    @property
    def running(self) -> bool:
        """Whether jobs are being stepped, so that there is somebody to let time pass."""
        return self._runs > 0

    def _plan_timer(self, timer: Timer) -> None:
        self._agenda.add(timer.when(), STEP, lambda: self._tools.fire(timer), timer)

    def block(self, seconds: float) -> None:
        """Let time pass in which this process does nothing, as `time.sleep` does: only the world outside goes on."""
        process, end = self._process, self._services.clock.now() + seconds
        while self._process == process:
            due = self._agenda.next_event(end)
            to = end if due is None else due.at
            if to > self._until and self._pause():
                continue
            self._advance_clock(max(to, self._services.clock.now()))
            if due is None:
                return
            self._agenda.strike(due)
            due.action()
        raise Suspension.killed(current_execution(), "killed")

    def _poll_again(self) -> bool:
        """Let a little time pass for futures that can only be asked; return whether there are any worth asking.

        Their conditions may depend on the time. After a while in which nothing else happens they count as waiting
        for ever.
        """
        if not self.alive or not self._services.waiting.polls or self._idle_polls >= self._most_idle_polls:
            return False
        self._idle_polls += 1
        self._agenda.add(self._services.clock.now() + PASS_SECONDS, STEP, _nothing)
        return True

    def _step_ready(self) -> bool:
        """Start the next step of this round; return whether there was one."""
        if not self.alive or len(self._in_flight) >= self._max_concurrency:
            return False
        job = self._rounds.take()
        if job is None:
            return False
        if self._can_run(job):
            self._begin_step(job)
        self._take_in()
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
        # Steps that ended while a tool was about to return were not taken in.
        self._take_in()
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
        return len(self._in_flight) < self._max_concurrency and self._rounds.open()

    def _begin_step(self, job: Job) -> None:
        job.steps += 1
        self._idle_polls = 0
        self._tools.step_begins()
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
        self._begun += 1
        self._in_flight[job.id] = _Flight(job, worker_step(self._services, job), self._begun)
        self._continue(job)

    def _continue(self, job: Job) -> None:
        """Let a step run on until it waits for time to pass or ends."""
        entry = self._in_flight.get(job.id)
        if entry is None:
            return
        process = self._process
        token = set_job(job)
        try:
            pause = next(entry.step)
        except StopIteration:
            self._escapes.pop(job.id, None)
            self._end_step(job)
            return
        except Escaped as escape:
            self._note_escape(job, escape)
            self._end_step(job)
            return
        except WorkerKilled as death:
            # Whoever waits beneath this step finds out by itself.
            if self._process == process and self._tools.failure is None:
                self.die(str(death))
            return
        finally:
            reset_job(token)

        def resume() -> None:
            self._resume(job, entry.step)

        if isinstance(pause, int | float):
            self._agenda.add(self._services.clock.now() + pause, STEP, resume)
        else:
            pause.add_done_callback(lambda _: self._agenda.add(self._services.clock.now(), STEP, resume))

    def _resume(self, job: Job, step: Step) -> None:
        """Continue a paused step, unless its worker died meanwhile."""
        entry = self._in_flight.get(job.id)
        if entry is not None and entry.step is step:
            self._continue(job)

    def _note_escape(self, job: Job, escape: Escaped) -> None:
        """Count steps in a row that nothing will come of, and end the run when there are too many."""
        times = self._escapes[job.id] = self._escapes.get(job.id, 0) + 1
        if times > MOST_ESCAPES:
            raise Livelock(f"job {job.id!r} repeats the same step forever: {escape}") from escape

    def _end_step(self, job: Job) -> None:
        self._rounds.step_ended(job, self._in_flight.pop(job.id).begun)
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
        self._agenda.add(self._services.clock.now() + pause, STEP, again)

    # -- the worker process ------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """The worker process dies: steps in flight are lost, nothing runs until `restart`."""
        self.alive = False
        self._forget(reason)
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", reason))

    def restart(self, jobs: list[Job]) -> None:
        """A new worker process opens the same state: every runnable job starts its pending work again.

        A process that is still alive ends first, and its steps in flight are lost with it.
        """
        self._forget("restarted")
        self.alive = True
        self._services.trace.add(events.WorldChanged(self._services.clock.now(), "", "worker", "restarted"))
        self._services.waiting.stir_all()
        for job in jobs:
            self.offer(job)

    def _forget(self, reason: str) -> None:
        """Lose what only the process knew."""
        self._process += 1
        self._tools.die(reason)
        lost, self._in_flight = self._in_flight, {}
        for entry in lost.values():
            entry.job.history.step_lost()
            # One that is running waits for an async tool, further up this stack: it is unwound from there.
            if getgeneratorstate(entry.step) != GEN_RUNNING:
                entry.step.close()
        self._agenda.forget_steps()
        self._rounds.clear()
        self._escapes.clear()
        self._unwind()

    def _unwind(self) -> None:
        """End the calls that a run left in the middle."""
        if self._stack is None or self._stack.is_current():
            return
        self._unwinding = True
        try:
            self._go_on()
        finally:
            self._unwinding = False

    def close(self) -> None:
        """Give up what is in the middle of something; nobody will run this any more."""
        if self._stack is not None:
            self._forget("closed")
        self._tools.close()


def _nothing() -> None:
    """Only let time pass."""
