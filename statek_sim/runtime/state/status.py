"""The job status table (001, Lifecycle)."""

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
