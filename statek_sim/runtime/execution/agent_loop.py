"""Agentic loops: as many jobs of an agent wait to start as its queue has items (behaviour 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, Protocol

from statek_sim.clock import Clock
from statek_sim.errors import RunawayJob
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus

_NEVER: Final = -1.0
"""Before any virtual time."""


class MakesJobs(Protocol):
    """How a loop creates a job."""

    def __call__(self, agent: Agent, *, warmup_code: WarmupSource) -> Job:
        """Return a new job."""


class AgentLoop:
    """One loop. `definition` is what this worker process looks at; errors on it end loop and worker."""

    def __init__(
        self,
        agent: Agent,
        warmup_code: WarmupSource,
        definition: JobDef,
        queue_size: Callable[[], int],
        *,
        jobs: Mapping[str, Job],
        create: MakesJobs,
        clock: Clock,
        most_at_once: int,
    ) -> None:
        self.agent = agent
        self.warmup_code = warmup_code
        self.definition = definition
        self._queue_size = queue_size
        self._jobs = jobs
        self._create = create
        self._clock = clock
        self._most_at_once = most_at_once
        self._at = _NEVER
        self._shortest = 0
        self._started = 0
        """Jobs started at the time `_at` since the queue became `_shortest`, as short as never before at that time."""
        self._starting: list[Job] = []
        self._seen = 0
        definition.clear_errors()

    def begin_anew(self, definition: JobDef) -> None:
        """Take a definition without errors, as a restarted process does."""
        self.definition = definition
        definition.clear_errors()

    def saved(self) -> dict[str, object]:
        """Return which definition it looks at, and how many jobs it has seen and started."""
        return {
            "definition": self.definition,
            "at_once": [self._at, self._shortest, self._started],
            "starting": [job.id for job in self._starting],
            "seen": self._seen,
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Go on where another process `saved` it."""
        self.definition = saved["definition"]
        # What earlier releases kept counts jobs only.
        self._at, self._shortest, self._started = saved.get("at_once", (_NEVER, 0, 0))
        self._starting = [self._jobs[name] for name in saved["starting"]]
        self._seen = saved["seen"]

    def start_jobs(self, capacity: int) -> None:
        """Create jobs until as many wait to start as the queue has items, at most `capacity`."""
        if self.definition.has_errors():
            raise RuntimeError(
                f"Job definition for agent '{self.agent.role}' has errors — aborting agentic loop"
            )
        waiting, size = self._waiting_to_start(), self._queue_size()
        for _ in range(min(capacity, size - waiting)):
            self._note_start(size)
            self._create(self.agent, warmup_code=self.warmup_code)

    def _waiting_to_start(self) -> int:
        created = islice(self._jobs.values(), self._seen, None)
        self._starting.extend(job for job in created if job.agent is self.agent)
        self._seen = len(self._jobs)
        # A job that has started never waits to start again.
        self._starting = [
            job for job in self._starting if job.life.status in (JobStatus.READY, JobStatus.WARMING_UP)
        ]
        return len(self._starting)

    def _note_start(self, size: int) -> None:
        now = self._clock.now()
        if now != self._at or size < self._shortest:
            self._at, self._shortest, self._started = now, size, 0
        self._started += 1
        if self._started > self._most_at_once:
            raise RunawayJob(
                f"the loop of agent {self.agent.role!r} started {self._most_at_once:,} jobs at {now:g} s while its "
                f"queue never got shorter than {self._shortest}: its jobs end without taking an item"
            )
