"""The life of a job: its status along the table, how a unit of work ends, how the next one begins ("Jobs").

The difficulty of its work chooses the model, and a rise of it extends the token limit (STATEK 1.4.1).
"""

from __future__ import annotations

from typing import Final, Protocol

from statek_sim import trace as events
from statek_sim.runtime.agents.agent import JobDef
from statek_sim.runtime.state.context import CurrentJob
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.state.status import JobStatus, advance
from statek_sim.sandbox.ordered_set import without_addresses


class Living(CurrentJob, Protocol):
    """A job, as far as its life is concerned; `runtime.jobs.job.Job` is one."""

    num_completions: int | None


class Life:
    """Where a job is: only `move_to` changes the status. `ended` fires when it becomes DONE.

    `stop_reason` says why the last unit ended: exit, final, the name of a limit, crash, warmup or contained.
    """

    __slots__ = ("_job", "ended", "status", "stop_reason")

    def __init__(self, job: Living) -> None:
        self._job = job
        self.status = JobStatus.READY
        self.stop_reason: str | None = None
        self.ended = Signal()

    def move_to(self, target: JobStatus) -> None:
        """Change the status along the table; staying where it is changes nothing."""
        if target is self.status:
            return
        job, host = self._job, self._job.host
        old, self.status = self.status, advance(self.status, target, job_id=job.id)
        host.trace.add(events.StatusChanged(host.clock.now(), job.id, old, target))
        host.job_changed(job)
        if target is JobStatus.DONE:
            self.ended.fire()

    def finish(self, reason: str, detail: str | None = None) -> None:
        """Mark the current unit DONE because of `reason`."""
        self.stop_reason = reason
        self.move_to(JobStatus.DONE)
        shown = None if detail is None else without_addresses(detail)
        host = self._job.host
        host.trace.add(events.JobStopped(host.clock.now(), self._job.id, reason, shown))

    def reopen(self, by: str) -> None:
        """Start the next unit of a DONE job."""
        job = self._job
        job.py_env.exit_status = None
        self.stop_reason = None
        self.move_to(JobStatus.STARTED)
        job.host.trace.add(events.Reactivated(job.host.clock.now(), job.id, by, job.num_completions))


LEVELS: Final = ("LOW", "MEDIUM", "HIGH")


class Difficulty:
    """The level that a job's definition or the settings say, and its rises."""

    __slots__ = ("_default", "_job_def", "_raised", "raised_at", "token_extension")

    def __init__(self, job_def: JobDef, default: str) -> None:
        self._job_def = job_def
        self._default = default
        self._raised: str | None = None
        self.token_extension = 0
        self.raised_at: list[int] = []

    @property
    def level(self) -> str:
        """LOW, MEDIUM or HIGH."""
        configured = self._raised or self._job_def.metadata.get("DEFAULT_DIFFICULTY")
        name = (configured or self._default).upper()
        return next((level for level in LEVELS if level.startswith(name)), name)

    def rise(self, tokens: int | None, log_length: int) -> str:
        """Go up one level and return it; `tokens`, if given, go to the limit. Above HIGH it is a RuntimeError."""
        current = self.level
        if current == LEVELS[-1]:
            raise RuntimeError(f"Job is already at high difficulty: {current.lower()}")
        self._raised = LEVELS[LEVELS.index(current) + 1]
        if tokens is not None:
            self.token_extension += tokens
            self.raised_at.append(log_length)
        return self._raised
