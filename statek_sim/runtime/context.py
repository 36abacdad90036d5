"""Which job is executing right now, where its output goes, and builtins that follow it.

STATEK patches `builtins.print` and `exit` process-wide while code runs, so concurrent jobs steal each other's
output (behaviour 3). Here the patched builtins look the destination up in a context variable, which asyncio
copies into every task: output always reaches the job whose code produced it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statek_sim.runtime.agents import Agent
    from statek_sim.runtime.job import Job


@dataclass(slots=True)
class Execution:
    """One run of code or of a tool on behalf of a job."""

    job: Job
    write: Callable[[str], None]
    exit: Callable[[object], None]
    namespace: dict[str, object]


_EXECUTION: ContextVar[Execution | None] = ContextVar("statek_sim_execution", default=None)
_JOB: ContextVar[Job | None] = ContextVar("statek_sim_job", default=None)

set_execution = _EXECUTION.set
reset_execution = _EXECUTION.reset
current_execution = _EXECUTION.get
set_job = _JOB.set
reset_job = _JOB.reset


def get_current_job() -> Job | None:
    """Return the job that is executing, or None outside of jobs."""
    return _JOB.get()


def get_current_agent() -> Agent | None:
    """Return the agent of the executing job, or None outside of jobs."""
    job = _JOB.get()
    return None if job is None else job.job_def.agent


def get_current_agent_name() -> str | None:
    """Return the role of the executing job's agent, or None outside of jobs."""
    agent = get_current_agent()
    return None if agent is None else agent.role


@contextmanager
def job_context(job: Job) -> Iterator[None]:
    """Make `job` the current job inside the block."""
    token = _JOB.set(job)
    try:
        yield
    finally:
        _JOB.reset(token)


@contextmanager
def captured_builtins(format_argument: Callable[[object], str]) -> Iterator[None]:
    """Send `print` and `exit` in tools and in agent code to the executing job; restore both at the end."""
    original_print, original_exit = builtins.print, builtins.exit

    def job_print(*args: Any, sep: Any = " ", end: Any = "\n", **options: Any) -> None:
        execution = _EXECUTION.get()
        if execution is None:
            original_print(*args, sep=sep, end=end, **options)
            return
        write_line(execution, args, sep, end, format_argument)

    def job_exit(status: object = None) -> None:
        execution = _EXECUTION.get()
        if execution is None:
            raise SystemExit(status)
        execution.exit(status)

    builtins.print = job_print
    builtins.exit = job_exit  # type: ignore[assignment]  # the site module's Quitter object is callable too
    try:
        yield
    finally:
        builtins.print = original_print
        builtins.exit = original_exit


def write_line(
    execution: Execution,
    args: tuple[object, ...],
    sep: str,
    end: str,
    format_argument: Callable[[object], str],
) -> None:
    """Write one `print` call as one console entry, as STATEK does whatever `end` is (behaviour 3).

    None for `sep` or `end`, which Python takes for the default, is an AttributeError or a TypeError.
    """
    text = sep.join([format_argument(arg) for arg in args])
    execution.write((text + end).rstrip("\n"))
