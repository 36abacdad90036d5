"""One job step: run the pending code or warmup, then ask the model ("Jobs", What Happens in a Step; behaviour 2).

A step is a generator. It yields virtual seconds that must pass (the model's latency, a retry delay) or a task that
must end, and ends when the step is over; the scheduler runs other jobs meanwhile. Async tools are no such pause: they
are waited for inside of the step (see `suspension`). The order of phases and of harness checks is STATEK's.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias

from statek_sim import progress
from statek_sim.errors import FAILS_THE_RUN
from statek_sim.runtime.execution.model_request import ask_model
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.tool_calls import CliLog, run_cli_call, run_regular_calls
from statek_sim.runtime.execution.workspace import job_output, run_block
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.chat_log import CodeBlock, LLM_LogItem, WarmupLogItem
from statek_sim.runtime.state.chat_style import ChatStyle, is_empty_code
from statek_sim.runtime.state.futures import FutureError
from statek_sim.runtime.state.pyenv import ErrorKind
from statek_sim.runtime.state.status import Contained, JobStatus, Unlogged, WorkerKilled
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.storable_types import load_all
from statek_sim.sandbox.llm_repr import shown


def fail_warmup(job: Job, error: Exception) -> None:
    """End the job with the error on its definition, not on itself (behaviour 2)."""
    if isinstance(error, StopIteration):
        # STATEK runs the code in a coroutine, and what Python says about that is all that is kept.
        error = RuntimeError("coroutine raised StopIteration")
    job.job_def.set_error(error)
    job.life.finish("warmup", f"{type(error).__name__}: {error}")
    job.notify_handlers(error)


def next_warmup_block(job: Job) -> bool:
    """Move to the next warmup block; return whether warmup is over."""
    if job.warmup_block_num < len(job.job_def.warmup_code) - 1:
        job.warmup_block_num += 1
        return False
    job.life.move_to(JobStatus.STARTED)
    return True


NO_CODE: Final = "Error: no code submitted."
Step: TypeAlias = Generator[float | Running, None, None]
"""Yields virtual seconds to let pass, or what to wait for."""


def job_step(services: Services, job: Job) -> Step:
    """Advance `job` by one step. Raises LLM_HarnessError and whatever kills the job; the worker handles both."""
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
    """Return whether a waiting job may go on, releasing it if its future has become ready.

    Up to 1.3.1 a step runs the waiting statement again without asking.
    """
    if not services.profile.waiting_job_is_dormant:
        # The job enters its block again and waits anew if it must.
        services.waiting.enter_again(job)
        return True
    if job.awaited_result is None:
        return True
    if not job.awaited_result.check_condition():
        return False
    services.release(job)
    return True


def _pending_block(job: Job) -> CodeBlock | None:
    """Return the warmup block or the reply that is to be executed next, if any."""
    if job.life.status in (JobStatus.READY, JobStatus.WARMING_UP):
        blocks = job.job_def.warmup_code
        return blocks[job.warmup_block_num] if job.warmup_block_num < len(blocks) else None
    response = job.last_response
    return CodeBlock(response) if isinstance(response, str) else response


def _run_pending(services: Services, job: Job, block: CodeBlock) -> bool:
    """Execute a block; return whether the step goes on to the model."""
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
    # Outside warmup the error is already on the console, where the model will see it.
    if failure is not None and job.life.status is JobStatus.WARMING_UP:
        fail_warmup(job, failure)
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
        # Also when the block is entered again after a wait (behaviour 7.2).
        job.log(WarmupLogItem(job.console_pos, job.host.timestamp(), job.warmup_block_num))


def _execute(services: Services, job: Job, block: CodeBlock) -> None:
    """Run a block's parts in STATEK's order: regular tool calls, code, then the `python_cli` call."""
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
        # A continuation inside python_cli is a tuple; a failed unpacking leaves a str, which skips the code too.
        resumes_elsewhere = isinstance(start, tuple | str)
        if not resumes_elsewhere and runs_code and block.code is not None and not is_empty_code(block.code):
            hidden = warming_up and block.hidden
            run_block(job, toolbox, block.code, job_output(job), start=start, hidden_allowed=hidden)
            exited = job.py_env.exit_status is not None
        # A tool call that exits does not keep `python_cli` from its first statement.
        if not exited:
            run_cli_call(job, toolbox, cli, start)
        job.awaited_result = None
        job.next_instr_num = None
    except WorkerKilled:
        killed = True
        raise
    finally:
        # A dead process stores nothing of a call that it was in the middle of.
        if not killed:
            cli.store()


def _finish_by_exit(services: Services, job: Job) -> None:
    """End the unit, unless a notification is waiting: then the exit value is lost and the job goes on."""
    if job.inbox.flush():
        job.py_env.exit_status = None
        services.harness.check_after_step(job)
        return
    services.harness.check_after_step(job)
    job.life.finish("exit", shown(job.py_env.exit_status))
    job.job_log.newest_position()
