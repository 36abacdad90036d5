"""The job status table ("Jobs", Lifecycle), and endings of a job step for which STATEK has no name."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from statek_sim.errors import TransitionError


class JobStatus(StrEnum):
    """The status of a job."""

    READY = "READY"
    WARMING_UP = "WARMING_UP"
    STARTED = "STARTED"
    SUSPENDED = "SUSPENDED"
    DONE = "DONE"


TRANSITIONS: Final[Mapping[JobStatus, frozenset[JobStatus]]] = {
    # A job without warmup goes straight to STARTED.
    JobStatus.READY: frozenset({JobStatus.WARMING_UP, JobStatus.STARTED, JobStatus.DONE}),
    # A wait in warmup keeps WARMING_UP (behaviour 7.2); a failure ends the job.
    JobStatus.WARMING_UP: frozenset({JobStatus.STARTED, JobStatus.DONE}),
    JobStatus.STARTED: frozenset({JobStatus.SUSPENDED, JobStatus.DONE}),
    # SUSPENDED to DONE, because the harness or a crash can end a waiting job.
    JobStatus.SUSPENDED: frozenset({JobStatus.STARTED, JobStatus.DONE}),
    # DONE is not final, because a message or a notification starts the next unit of work.
    JobStatus.DONE: frozenset({JobStatus.STARTED}),
}
"""The allowed transitions."""


def advance(current: JobStatus, target: JobStatus, *, job_id: str) -> JobStatus:
    """Return `target` if the table allows it after `current`; otherwise raise `TransitionError`."""
    if target not in TRANSITIONS[current]:
        options = ", ".join(sorted(TRANSITIONS[current])) or "nothing"
        raise TransitionError(
            f"job {job_id!r}: {current} -> {target} is not allowed (from {current}: {options})"
        )
    return target


class Contained(Exception):
    """Model-written code that STATEK could neither stop nor survive was stopped; the job ends with this error."""


class Escaped(Exception):
    """STATEK's worker failed while it recorded a failure: the job stays unchanged, and its step is repeated."""


class Unlogged(Exception):
    """The store refused the result of a tool call, with `error`: the job crashes with that, whatever its code did."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WorkerKilled(BaseException):
    """The worker process died at this point; everything not yet written is lost. Nothing may catch it."""


class RunLost(BaseException):
    """The run could not be saved at this point, so that nothing after it may become part of its history.

    `error` says why. Not an `Exception`: code of a model, a tool or a handler would catch it and continue.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


PASSING: Final = (KeyboardInterrupt, GeneratorExit, RunLost)
"""Exceptions that end neither a block nor a tool, but the whole run or the process: they propagate without a report."""
