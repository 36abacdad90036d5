"""The jobs that STATEK's store has, by the names that a test knows them by."""

from __future__ import annotations

from typing import Any

import dbzero
from statek.executors.job import Job

from statek_sim.values import IdSource


class KnownJobs:
    """Jobs by name, in order of creation, those that STATEK created by itself included."""

    def __init__(self) -> None:
        self._jobs: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._ids = IdSource()

    def jobs(self) -> dict[str, Any]:
        """Return the jobs by name, oldest first: the store's own order is nobody's promise."""
        newcomers = [job for job in dbzero.find(Job) if dbzero.uuid(job) not in self._names]
        # The store finds the newest first, and jobs of one moment have one time.
        for job in reversed(newcomers):
            self.meet(job, None)
        return self._jobs

    def meet(self, job: Any, name: str | None) -> None:
        """Take in a new job under a name, or under the next one that is free."""
        name = self._ids.next("job") if name is None else name
        while name in self._jobs:
            name = self._ids.next("job")
        self._names[dbzero.uuid(job)] = name
        self._jobs[name] = job

    def name_of(self, job: Any) -> str:
        """Return a job's name."""
        if dbzero.uuid(job) not in self._names:
            self.jobs()
        return self._names[dbzero.uuid(job)]
