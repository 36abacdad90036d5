"""The worker around a step: what happens when a step fails (000, When Checks Run; behaviour 2, 8)."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from statek_sim.errors import LLM_HarnessError, ProviderFailure, StatekSimError
from statek_sim.runtime.agents.job_def import JobDefError
from statek_sim.runtime.execution.model_name import BadModelName
from statek_sim.runtime.execution.step import Step, job_step
from statek_sim.runtime.state.containment import Contained, Escaped
from statek_sim.runtime.state.pyenv import ErrorKind
from statek_sim.runtime.stored.kinds import with_full_names

if TYPE_CHECKING:
    from statek_sim.runtime.execution.services import Services
    from statek_sim.runtime.jobs.job import Job


def worker_step(services: Services, job: Job) -> Step:
    """Run one step; a failure of the job ends the job, a failure of the test set-up goes up.

    A failure that cannot even be recorded is `Escaped`.
    """
    try:
        yield from job_step(services, job)
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
    """Record the error on the console, set the exit status, end the job, run the handlers: in this order (000)."""
    job.py_env.exit_status = f"Error: {error}"
    _show(job, f"LLM_HarnessError: {error}", ErrorKind.HARNESS)
    job.error = JobDefError(str(error), "LLM_HarnessError")
    job.life.finish(str(getattr(error, "limit", "harness")), str(error))
    job.notify_handlers(error)


def _crash(job: Job, error: Exception) -> None:
    with_full_names(error)
    _end(job, error, f"Job {job.id} failed with error: {error}\n{_traceback(error)}", "crash")


def _end(job: Job, error: Exception, shown: str, reason: str) -> None:
    _show(job, shown, ErrorKind.EXECUTION)
    job.error = JobDefError(str(error), type(error).__name__)
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
