"""Job statuses and their transitions ("Jobs", Lifecycle), and exceptions that end a step."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from statek_sim.errors import TransitionError


class JobStatus(StrEnum):
    """The five job statuses ("Jobs", Lifecycle)."""

    READY = "READY"
    WARMING_UP = "WARMING_UP"
    STARTED = "STARTED"
    SUSPENDED = "SUSPENDED"
    DONE = "DONE"


TRANSITIONS: Final[Mapping[JobStatus, frozenset[JobStatus]]] = {
    # A job without warmup goes straight to STARTED.
    JobStatus.READY: frozenset({JobStatus.WARMING_UP, JobStatus.STARTED, JobStatus.DONE}),
    # A job that waits in warmup stays WARMING_UP (behaviour 7.2); a failure ends the job.
    JobStatus.WARMING_UP: frozenset({JobStatus.STARTED, JobStatus.DONE}),
    JobStatus.STARTED: frozenset({JobStatus.SUSPENDED, JobStatus.DONE}),
    # SUSPENDED can change to DONE, because the harness or a crash can end a waiting job.
    JobStatus.SUSPENDED: frozenset({JobStatus.STARTED, JobStatus.DONE}),
    # DONE is not final, because a message or a notification starts the next unit of work.
    JobStatus.DONE: frozenset({JobStatus.STARTED}),
}
"""The statuses that each status may change to."""


def advance(current: JobStatus, target: JobStatus, *, job_id: str) -> JobStatus:
    """Return `target` if `TRANSITIONS` allows the change from `current`; otherwise raise `TransitionError`."""
    if target not in TRANSITIONS[current]:
        options = ", ".join(sorted(TRANSITIONS[current])) or "nothing"
        raise TransitionError(
            f"job {job_id!r}: {current} -> {target} is not allowed (from {current}: {options})"
        )
    return target


class Contained(Exception):
    """Raised for model-written code that STATEK could neither stop nor survive; it ends the job."""


class Escaped(Exception):
    """Raised where STATEK's worker fails to record an error; the job stays unchanged, and its step is repeated."""


class Unlogged(Exception):
    """Raised if the store rejects a tool call's result. The job crashes with `error`, the store's error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WorkerKilled(BaseException):
    """Raised where the worker process dies; values not yet stored are lost. Code must not suppress it."""


class RunLost(BaseException):
    """Raised if the run could not be saved, so that nothing after this point becomes part of its history.

    `error` is the reason. This is not an `Exception`, because model-written code, a tool or a handler could catch it.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


PASSING: Final = (KeyboardInterrupt, GeneratorExit, RunLost)
"""Exceptions that end the whole run or process instead of a block or tool; they are not reported to the
job.
"""
