"""The job status table ("Jobs", Lifecycle), and the ways in which a job step ends that STATEK has no word for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from statek_sim.errors import TransitionError


class JobStatus(StrEnum):
    """Where a job is in its life."""

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
    # SUSPENDED to DONE: the harness or a crash ends a waiting job.
    JobStatus.SUSPENDED: frozenset({JobStatus.STARTED, JobStatus.DONE}),
    # DONE is a resting state: a message or a notification starts the next unit of work.
    JobStatus.DONE: frozenset({JobStatus.STARTED}),
}
"""Which status may follow which."""


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
    """STATEK's worker failed while it recorded a failure: the job stays as it is, and its step is taken again."""


class Unlogged(Exception):
    """The store refused what a tool call left, with `error`: the job crashes with that, whatever its code did."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WorkerKilled(BaseException):
    """The worker process died at this point; what was not yet written down is lost. Nothing may catch it."""


class RunLost(BaseException):
    """The run could not be made durable at this point, so that nothing after it may become part of its history.

    `error` says why. Not an `Exception`: for the code of a model, a tool or a handler it would be an error to live on
    with.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


PASSING: Final = (KeyboardInterrupt, GeneratorExit, RunLost)
"""What ends neither a block nor a tool, but the whole run or the process: it is told of nowhere, and passes."""
