"""Every conformance job, by name."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import ConformanceJob
from tests.conformance.subjects import (
    claims,
    consoles,
    dialogs,
    failures,
    futures,
    limits,
    notifications,
    offered_tools,
    python,
    subtasks,
    tool_calls,
    values,
    warmups,
)

SUBJECTS: Final = (
    python.JOBS,
    values.JOBS,
    consoles.JOBS,
    futures.JOBS,
    warmups.JOBS,
    dialogs.JOBS,
    tool_calls.JOBS,
    offered_tools.JOBS,
    claims.JOBS,
    limits.JOBS,
    subtasks.JOBS,
    notifications.JOBS,
    failures.JOBS,
)


def _by_name() -> dict[str, ConformanceJob]:
    jobs: dict[str, ConformanceJob] = {}
    for job in (job for subject in SUBJECTS for job in subject):
        if job.name in jobs:
            raise ValueError(f"two conformance jobs are called {job.name!r}")
        jobs[job.name] = job
    return jobs


JOBS: Final = _by_name()
