"""Jobs that wait, found again by what became ready and not by looking at all of them.

STATEK asks every waiting job's condition on every pass. Here a job whose future knows its signals costs nothing
until one fires; only futures with unknown dependencies are asked on every pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statek_sim.runtime.state.status import JobStatus

if TYPE_CHECKING:
    from statek_sim.runtime.jobs.job import Job


class WaitingRoom:
    """Waiting jobs by id, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._polled: dict[str, Job] = {}
        self._stirred: dict[str, Job] = {}
        self._since: dict[str, int] = {}
        self._entering: dict[str, Job] = {}
        self._waits = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: Job) -> bool:
        return job.id in self._jobs

    def add(self, job: Job) -> None:
        """Start waiting for `job.awaited_result`."""
        self.remove(job)
        self._entering.pop(job.id, None)
        self._jobs[job.id] = job
        if job.id not in self._since:
            self._waits += 1
            self._since[job.id] = self._waits
        if job.awaited_result is None:
            return
        signals = job.awaited_result.signals()
        if signals is None:
            self._polled[job.id] = job
            return
        for signal in signals:
            signal.listen(job.id, self._stir)
        # What it waits for may be there already, after a wrong unpacking: no signal will fire then.
        self._stirred[job.id] = job

    def remove(self, job: Job) -> None:
        """Stop waiting; one that waits again before `forget` has waited all the time. Others are ignored."""
        if self._jobs.pop(job.id, None) is None:
            return
        self._polled.pop(job.id, None)
        self._stirred.pop(job.id, None)
        future = job.awaited_result
        for signal in (future.signals() if future is not None else None) or ():
            signal.forget(job.id)

    def enter_again(self, job: Job) -> None:
        """Stop waiting, for as long as the job runs the code again in which it waits: see `jobs`."""
        if job.id in self._jobs and job.life.status is JobStatus.WARMING_UP:
            self._entering[job.id] = job
        self.remove(job)

    def forget(self, job: Job) -> None:
        """Let the next wait of a job that does not wait begin anew."""
        self._entering.pop(job.id, None)
        if job.id not in self._jobs:
            self._since.pop(job.id, None)

    def _stir(self, job_id: str) -> None:
        self._stirred[job_id] = self._jobs[job_id]

    def saved(self) -> dict[str, object]:
        """Return who waits, and since when."""
        return {
            "jobs": [*self._jobs],
            "stirred": [*self._stirred],
            "entering": [*self._entering],
            "since": [*self._since.items()],
            "waits": self._waits,
        }

    def resume(self, saved: Mapping[str, Any], jobs: Mapping[str, Job]) -> None:
        """Let the same jobs wait as in the process that `saved` it."""
        for name in saved["jobs"]:
            self.add(jobs[name])
        self._entering = {name: jobs[name] for name in saved["entering"]}
        self._stirred = {name: jobs[name] for name in saved["stirred"]}
        self._since, self._waits = dict(saved["since"]), saved["waits"]

    def rank(self, job: Job) -> float:
        """Return a job's place among those that wait, oldest first; behind all of them if it does not wait."""
        return self._since[job.id] if job.id in self._jobs else float("inf")

    @property
    def polls(self) -> bool:
        """Whether some job waits for a future that can only be asked."""
        return bool(self._polled)

    def stir_all(self) -> None:
        """Have every waiting job's condition asked at the next pass, as a new worker process does."""
        self._stirred = dict(self._jobs)

    def candidates(self) -> list[Job]:
        """Return the jobs whose condition may have changed since the last call, oldest wait first."""
        if not self._stirred and not self._polled:
            return []
        found = list({**self._polled, **self._stirred}.values())
        self._stirred.clear()
        return sorted(found, key=self.rank)

    def jobs(self) -> list[Job]:
        """Return every waiting job, oldest wait first; one that enters its warmup again has not stopped to wait."""
        entering = {
            name: job for name, job in self._entering.items() if job.life.status is JobStatus.WARMING_UP
        }
        return [*{**self._jobs, **entering}.values()]
