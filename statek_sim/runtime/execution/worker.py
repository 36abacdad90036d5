"""The worker around steps: begun, paused while virtual time passes, gone on with, ended, failed or lost.

Source: "Harness Policies", When Checks Run; behaviour 2, 8.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any, NamedTuple

from statek_sim import trace as events
from statek_sim.errors import Livelock, LLM_HarnessError, ProviderFailure, RunawayJob, StatekSimError
from statek_sim.harness.limits import MOST_ESCAPES
from statek_sim.runtime.agents.agent import JobDefError
from statek_sim.runtime.execution.agenda import STEP, Agenda
from statek_sim.runtime.execution.model_name import BadModelName
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.step import Step, job_step
from statek_sim.runtime.execution.suspension import Suspension
from statek_sim.runtime.jobs.job import Job, reset_job, set_job
from statek_sim.runtime.state.pyenv import ErrorKind
from statek_sim.runtime.state.status import Contained, Escaped, JobStatus, WorkerKilled
from statek_sim.runtime.stored.storable_types import with_full_names


def worker_step(services: Services, job: Job) -> Step:
    """Run one step; a failure of the job ends the job, a failure of the test set-up goes up.

    A failure that cannot even be recorded is `Escaped`.
    """
    try:
        yield from job_step(services, job)
        # STATEK logs the cost after each step: prices that are no decimals end the job.
        _ = job.usage.total_cost
    except LLM_HarnessError as error:
        _stop_by_harness(job, error)
    except StatekSimError as error:
        # A provider's failure or an impossible model name is the job's own trouble; the rest is the test's.
        if not isinstance(error, ProviderFailure | BadModelName):
            raise
        _crash(job, error)
    except Contained as error:
        _end(job, error, f"Job {job.id} was stopped: {error}", "contained")
    except Exception as error:  # noqa: BLE001  # STATEK's worker ends the job, whatever it was
        _crash(job, error)


def _stop_by_harness(job: Job, error: LLM_HarnessError) -> None:
    """Record the error on the console, set the exit status, end the job, run the handlers: in this order.

    Source: "Harness Policies".
    """
    job.py_env.exit_status = f"Error: {error}"
    _show(job, f"LLM_HarnessError: {error}", ErrorKind.HARNESS)
    job.error = JobDefError(error, collect_traceback=False)
    job.life.finish(str(getattr(error, "limit", "harness")), str(error))
    job.notify_handlers(error)


def _crash(job: Job, error: Exception) -> None:
    with_full_names(error)
    _end(job, error, f"Job {job.id} failed with error: {error}\n{_traceback(error)}", "crash")


def _end(job: Job, error: Exception, shown: str, reason: str) -> None:
    _show(job, shown, ErrorKind.EXECUTION)
    job.error = JobDefError(error, collect_traceback=False)
    job.life.finish(reason, f"{_known_as(error).rpartition('.')[2]}: {error}")
    job.notify_handlers(error)


def _show(job: Job, text: str, kind: ErrorKind) -> None:
    try:
        job.console_append(text, kind)
    except AttributeError as error:
        # Only in 1.2.5: see `JobLog.newest_position`.
        raise Escaped(f"{type(error).__name__}: {error}") from error


def _known_as(error: Exception) -> str:
    """Return the class that STATEK's user knows the error by: for a provider's failure, its client's."""
    known_as = error.known_as if isinstance(error, ProviderFailure) else None
    return known_as or type(error).__name__


def _traceback(error: Exception) -> str:
    """Return the traceback's last part only: frames carry paths, which differ from machine to machine."""
    text = "".join(traceback.format_exception_only(error))
    if isinstance(error, ProviderFailure) and error.known_as is not None:
        kind = type(error)
        text = text.replace(f"{kind.__module__}.{kind.__qualname__}", error.known_as, 1)
    return f"{_damage(error)}Traceback (most recent call last):\n{text}"


def _damage(error: Exception) -> str:
    """Return what comes before the traceback of an error that is there because the store damaged a value."""
    if not isinstance(error, SystemError) or error.__cause__ is None:
        return ""
    cause = f"{type(error.__cause__).__name__}: {error.__cause__}"
    return f"{cause}\n\nThe above exception was the direct cause of the following exception:\n\n"


class _Flight(NamedTuple):
    """A step that has begun and not ended; `begun` numbers them."""

    job: Job
    step: Step
    begun: int


class StepsInFlight:
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
