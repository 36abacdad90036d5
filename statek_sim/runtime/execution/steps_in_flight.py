"""Steps in flight: begun, paused while virtual time passes, gone on with, ended or lost with their process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any, NamedTuple

from statek_sim import trace as events
from statek_sim.errors import Livelock, RunawayJob
from statek_sim.harness.limits import MOST_ESCAPES
from statek_sim.runtime.execution.agenda import STEP, Agenda
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.step import Step
from statek_sim.runtime.execution.suspension import Suspension
from statek_sim.runtime.execution.worker import worker_step
from statek_sim.runtime.jobs.current import reset_job, set_job
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.containment import Escaped, WorkerKilled
from statek_sim.runtime.state.status import JobStatus


class _Flight(NamedTuple):
    """A step that has begun and not ended; `begun` numbers them."""

    job: Job
    step: Step
    begun: int


class Flights:
    """The steps in flight of one worker process; `process` numbers the processes.

    `ended` is told of a job whose step has ended and the number of that step, `died` why the process is dead.
    """

    def __init__(
        self,
        services: Services,
        agenda: Agenda,
        tools: Suspension,
        max_steps: int,
        *,
        ended: Callable[[Job, int], None],
        died: Callable[[str], None],
    ) -> None:
        self._services = services
        self._agenda = agenda
        self._tools = tools
        self._max_steps = max_steps
        self._ended = ended
        self._died = died
        self._steps: dict[str, _Flight] = {}
        self._begun = 0
        self._escapes: dict[str, int] = {}
        self.process = 0
        self.beginning = False

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._steps

    def begin(self, job: Job) -> None:
        """Begin a step of `job`; one too many is `RunawayJob`."""
        job.steps += 1
        if job.steps > self._max_steps:
            raise RunawayJob(_ran_away(job, self._max_steps))
        self.beginning = True
        try:
            self._services.trace.add(events.StepStarted(self._services.clock.now(), job.id, job.steps))
        except WorkerKilled as death:
            self._died(str(death))
            return
        finally:
            self.beginning = False
        self._begun += 1
        self._steps[job.id] = _Flight(job, worker_step(self._services, job), self._begun)
        self._continue(job)

    def _continue(self, job: Job) -> None:
        """Let a step run on until it waits for time to pass or ends."""
        entry = self._steps.get(job.id)
        if entry is None:
            return
        process = self.process
        token = set_job(job)
        try:
            pause = next(entry.step)
        except StopIteration:
            self._escapes.pop(job.id, None)
            self._end(job)
            return
        except Escaped as escape:
            self._note_escape(job, escape)
            self._end(job)
            return
        except WorkerKilled as death:
            # Whoever waits beneath this step finds out by itself.
            if self.process == process and self._tools.failure is None:
                self._died(str(death))
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
        entry = self._steps.get(job.id)
        if entry is not None and entry.step is step:
            self._continue(job)

    def _note_escape(self, job: Job, escape: Escaped) -> None:
        """Count steps in a row that nothing will come of, and end the run when there are too many."""
        times = self._escapes[job.id] = self._escapes.get(job.id, 0) + 1
        if times > MOST_ESCAPES:
            raise Livelock(f"job {job.id!r} repeats the same step forever: {escape}") from escape

    def _end(self, job: Job) -> None:
        self._ended(job, self._steps.pop(job.id).begun)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do `action` when so many virtual seconds have passed, if it is still this process."""
        process = self.process

        def act() -> None:
            if self.process == process:
                action()

        self._agenda.add(self._services.clock.now() + seconds, STEP, act)

    def end_process(self) -> None:
        """Begin the next process: what waits for the one before finds out."""
        self.process += 1

    def saved(self) -> dict[str, object]:
        """Return how many steps have begun, and whose are in flight: a new process has lost those."""
        return {"begun": self._begun, "in_flight": [*self._steps]}

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Go on where another process `saved` it: its steps in flight are lost."""
        self._begun = saved["begun"]
        for name in saved["in_flight"]:
            jobs[name].history.step_lost()

    def lose(self) -> None:
        """Lose every step in flight, with what only its process knew."""
        lost, self._steps = self._steps, {}
        for entry in lost.values():
            entry.job.history.step_lost()
            # One that is running waits for an async tool, further up this stack: it is unwound from there.
            if getgeneratorstate(entry.step) != GEN_RUNNING:
                entry.step.close()
        self._escapes.clear()


def _ran_away(job: Job, max_steps: int) -> str:
    in_warmup = job.awaited_result is not None and job.life.status is JobStatus.WARMING_UP
    advice = (
        "It waits in warmup, where this version of STATEK enters the block again without a pause: let it "
        "wait in a reply, or for a shorter time"
        if in_warmup
        else "Give it a limit, the run an end in time (until), or raise max_steps"
    )
    return f"job {job.id!r} wants step {job.steps}; one run allows {max_steps} per job. {advice}"
