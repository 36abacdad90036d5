"""A job's step, and the worker that runs it.

A step runs the pending code or warmup block, then calls the model. It is a generator that yields virtual
seconds to wait (model latency, a retry delay) or a task that must finish; the scheduler runs other jobs in
the meantime. Async tools are awaited inside the step instead (see `suspension`). The phases and harness
checks are in STATEK's order.

Source: "Jobs", What Happens in a Step; "Harness Policies", When Checks Run; behaviour 2 and 8.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Mapping
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any, Final, NamedTuple, TypeAlias

from statek_sim import progress
from statek_sim import trace as events
from statek_sim.errors import (
    FAILS_THE_RUN,
    Livelock,
    LLM_HarnessError,
    ProviderFailure,
    RunawayJob,
    StatekSimError,
)
from statek_sim.harness.limits import MOST_ESCAPES
from statek_sim.runtime.agents.agent import JobDefError
from statek_sim.runtime.execution.agenda import STEP, Agenda
from statek_sim.runtime.execution.model_name import BadModelName
from statek_sim.runtime.execution.model_request import ask_model
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.suspension import Suspension
from statek_sim.runtime.execution.tool_calls import CliLog, run_cli_call, run_regular_calls
from statek_sim.runtime.execution.workspace import job_output, run_block
from statek_sim.runtime.jobs.job import Job, reset_job, set_job
from statek_sim.runtime.state.chat_log import CodeBlock, LLM_LogItem, WarmupLogItem
from statek_sim.runtime.state.chat_style import ChatStyle, is_empty_code
from statek_sim.runtime.state.futures import FutureError
from statek_sim.runtime.state.pyenv import ErrorKind
from statek_sim.runtime.state.status import Contained, Escaped, JobStatus, Unlogged, WorkerKilled
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.storable_types import load_all, with_full_names
from statek_sim.sandbox.llm_repr import shown


def fail_warmup(job: Job, error: Exception) -> None:
    """End a job whose warmup failed, and record the error on the job's definition instead of the job (behaviour 2)."""
    if isinstance(error, StopIteration):
        # STATEK runs the code in a coroutine, from which Python raises this error.
        error = RuntimeError("coroutine raised StopIteration")
    job.job_def.set_error(error)
    job.life.finish("warmup", f"{type(error).__name__}: {error}")
    job.notify_handlers(error)


def next_warmup_block(job: Job) -> bool:
    """Advance the job to its next warmup block; after the last block, start the job and return True."""
    following = (job.warmup_block_num or 0) + 1
    if following < len(job.job_def.blocks):
        job.warmup_block_num = following
        return False
    job.life.move_to(JobStatus.STARTED)
    return True


NO_CODE: Final = "Error: no code submitted."
Step: TypeAlias = Generator[float | Running, None, None]
"""A generator that yields virtual seconds to wait, or a task to wait for."""


def job_step(services: Services, job: Job) -> Step:
    """Advance `job` by one step; raises `LLM_HarnessError` and other errors that end the job."""
    progress.at(job.id, job.num_turns)
    services.harness.check_before_step(job)
    if job.life.status is JobStatus.DONE or not may_run(services, job):
        return
    if job.py_env.stores:
        load_all(job.py_env.local_state)
    block = _pending_block(job)
    if block is None:
        job.life.move_to(JobStatus.STARTED)
    elif not _run_pending(services, job, block):
        return
    yield from ask_model(services, job)


def may_run(services: Services, job: Job) -> bool:
    """Return whether a job may take a step; a waiting job is released if its future is ready.

    Up to 1.3.1, the statement is run again without checking the future.
    """
    if not services.profile.waiting_job_is_dormant:
        # The job runs its block again, and waits again if its future is still not ready.
        services.waiting.enter_again(job)
        return True
    if job.awaited_result is None:
        return True
    if not job.awaited_result.check_condition():
        return False
    services.release(job)
    return True


def _pending_block(job: Job) -> CodeBlock | None:
    """Return the warmup block or the reply that the job executes next, or None."""
    if job.life.status in (JobStatus.READY, JobStatus.WARMING_UP):
        blocks = job.job_def.blocks
        return blocks[job.warmup_block_num or 0] if blocks else None
    response = job.last_response
    return CodeBlock(response) if isinstance(response, str) else response


def _run_pending(services: Services, job: Job, block: CodeBlock) -> bool:
    """Execute a block; return whether the step continues with a model request."""
    _enter(job)
    if not block.tool_calls and job.chat_style is not ChatStyle.DIRECT and is_empty_code(block.code):
        job.console_append(NO_CODE, ErrorKind.EXECUTION)
    failure: Exception | None = None
    try:
        _execute(services, job, block)
    except FutureError as waiting:
        services.wait(job, waiting)
        return False
    except (Contained, *FAILS_THE_RUN):
        raise
    except Unlogged as unlogged:
        raise unlogged.error from unlogged.error.__cause__
    except Exception as error:  # noqa: BLE001  # model-written code
        failure = error
    services.trace.passed("block ended", job.id)
    # After warmup, errors are not handled here: they are already on the console, where the model will see them.
    is_failed_warmup = failure is not None and job.life.status is JobStatus.WARMING_UP
    if failure is not None and is_failed_warmup:
        fail_warmup(job, failure)
    # Break a reference cycle through the traceback: the store forgets objects that only the failed code held.
    failure = None
    if is_failed_warmup:
        return False
    if job.py_env.exit_status is not None:
        _finish_by_exit(services, job)
        return False
    return next_warmup_block(job) if job.life.status is JobStatus.WARMING_UP else True


def _enter(job: Job) -> None:
    if job.life.status is JobStatus.READY:
        job.life.move_to(JobStatus.WARMING_UP)
    elif job.life.status is JobStatus.SUSPENDED:
        job.life.move_to(JobStatus.STARTED)
    if job.life.status is JobStatus.WARMING_UP:
        # This also applies if the job runs the block again after a wait (behaviour 7.2).
        job.log(WarmupLogItem(job.console_pos, job.host.timestamp(), job.warmup_block_num or 0))


def _execute(services: Services, job: Job, block: CodeBlock) -> None:
    """Run the parts of a block in STATEK's order: regular tool calls, the code, the `python_cli` calls."""
    toolbox = services.toolbox(job)
    item = job.job_log.last
    log_item = item if isinstance(item, LLM_LogItem | WarmupLogItem) else None
    if block.tool_calls and job.next_instr_num is None:
        run_regular_calls(job, toolbox, block.tool_calls, log_item)
    cli = CliLog(job, block, log_item)
    exited = killed = False
    try:
        start = job.next_instr_num
        warming_up = job.life.status is JobStatus.WARMING_UP
        runs_code = warming_up or job.chat_style is not ChatStyle.DIRECT
        # A tuple means a continuation inside `python_cli`. A failed unpacking leaves a str, which also skips the code.
        resumes_elsewhere = isinstance(start, tuple | str)
        if not resumes_elsewhere and runs_code and block.code is not None and not is_empty_code(block.code):
            hidden = warming_up and block.hidden
            run_block(job, toolbox, block.code, job_output(job), start=start, hidden_allowed=hidden)
            exited = job.py_env.exit_status is not None
        # A tool call that exits does not prevent the first statement of `python_cli`.
        if not exited:
            run_cli_call(job, toolbox, cli, start)
        job.awaited_result = None
        job.next_instr_num = None
    except WorkerKilled:
        killed = True
        raise
    finally:
        # A dead process stores nothing from an interrupted call.
        if not killed:
            cli.store()


def _finish_by_exit(services: Services, job: Job) -> None:
    """Finish the unit of work of a job that called `exit`.

    If a notification is pending, the exit status is discarded and the job continues.
    """
    if job.inbox.flush():
        job.py_env.exit_status = None
        services.harness.check_after_step(job)
        return
    services.harness.check_after_step(job)
    job.life.finish("exit", shown(job.py_env.exit_status))
    job.job_log.newest_position()


def worker_step(services: Services, job: Job) -> Step:
    """Run one step.

    A job's error ends the job, but an error in the test setup is raised. Raises `Escaped` if STATEK could not
    record a job's error.
    """
    try:
        yield from job_step(services, job)
        # STATEK logs the cost after each step, so prices that are not decimals end the job.
        _ = job.usage.total_cost
    except LLM_HarnessError as error:
        _stop_by_harness(job, error)
    except StatekSimError as error:
        # A provider failure or an invalid model name is the job's error; other errors are the test's.
        if not isinstance(error, ProviderFailure | BadModelName):
            raise
        _crash(job, error)
    except Contained as error:
        _end(job, error, f"Job {job.id} was stopped: {error}", "contained")
    except Exception as error:  # noqa: BLE001  # STATEK's worker ends the job, whatever it was
        _crash(job, error)


def _stop_by_harness(job: Job, error: LLM_HarnessError) -> None:
    """End a job that exceeded a limit.

    The order is STATEK's: set the exit status, write the error to the console, end the job, run the error handlers
    ("Harness Policies").
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
    """Return an error's class name in STATEK: for a provider failure, the name of the HTTP client's exception."""
    known_as = error.known_as if isinstance(error, ProviderFailure) else None
    return known_as or type(error).__name__


def _traceback(error: Exception) -> str:
    """Return the traceback without frames, whose paths differ between machines."""
    text = "".join(traceback.format_exception_only(error))
    if isinstance(error, ProviderFailure) and error.known_as is not None:
        kind = type(error)
        text = text.replace(f"{kind.__module__}.{kind.__qualname__}", error.known_as, 1)
    return f"{_damage(error)}Traceback (most recent call last):\n{text}"


def _damage(error: Exception) -> str:
    """Return the cause with which the traceback starts, if the store raised the error for a damaged value."""
    if not isinstance(error, SystemError) or error.__cause__ is None:
        return ""
    cause = f"{type(error.__cause__).__name__}: {error.__cause__}"
    return f"{cause}\n\nThe above exception was the direct cause of the following exception:\n\n"


class _Flight(NamedTuple):
    """A step that has started but not ended; `begun` is the step's one-based number."""

    job: Job
    step: Step
    begun: int


class StepsInFlight:
    """The current worker process's unfinished steps; `process` is the process's number.

    `ended` is called with the job and the step number when a step ends. `died` is called with the reason if
    the worker process dies.
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
        """Start a step of `job`; raises `RunawayJob` if the job has taken too many steps."""
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
        """Run `job`'s step until it yields or ends."""
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
            # Code that is waiting further up this stack detects the failure itself.
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
        """Continue a paused step, unless the worker process has died since."""
        entry = self._steps.get(job.id)
        if entry is not None and entry.step is step:
            self._continue(job)

    def _note_escape(self, job: Job, escape: Escaped) -> None:
        """Count consecutive steps of `job` that raised `Escaped`; raise `Livelock` if there are too many."""
        times = self._escapes[job.id] = self._escapes.get(job.id, 0) + 1
        if times > MOST_ESCAPES:
            raise Livelock(f"job {job.id!r} repeats the same step forever: {escape}") from escape

    def _end(self, job: Job) -> None:
        self._ended(job, self._steps.pop(job.id).begun)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Call `action` after `seconds` of virtual time, unless the worker process dies first."""
        process = self.process

        def act() -> None:
            if self.process == process:
                action()

        self._agenda.add(self._services.clock.now() + seconds, STEP, act)

    def end_process(self) -> None:
        """Increment the process number, so that code waiting in the previous process stops."""
        self.process += 1

    def saved(self) -> dict[str, object]:
        """Return the number of started steps, and the ids of jobs with a step in flight, for `resume`."""
        return {"begun": self._begun, "in_flight": [*self._steps]}

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Restore the state saved by another process, whose steps in flight are lost."""
        self._begun = saved["begun"]
        for name in saved["in_flight"]:
            jobs[name].history.step_lost()

    def lose(self) -> None:
        """Discard all steps in flight, because the worker process died."""
        lost, self._steps = self._steps, {}
        for entry in lost.values():
            entry.job.history.step_lost()
            # A running step that is waiting for an async tool is further up this stack, and is unwound there.
            if getgeneratorstate(entry.step) != GEN_RUNNING:
                entry.step.close()
        self._escapes.clear()


def _ran_away(job: Job, max_steps: int) -> str:
    in_warmup = job.awaited_result is not None and job.life.status is JobStatus.WARMING_UP
    advice = (
        "The job is waiting in warmup, where this STATEK version reruns the block without a pause; "
        "make the job wait in a reply, or for a shorter time"
        if in_warmup
        else "Set a limit for the job, stop the run with `until`, or increase max_steps"
    )
    return f"job {job.id!r} would take step {job.steps}, but a run allows {max_steps} steps per job. {advice}"
