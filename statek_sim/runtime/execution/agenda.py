"""Scheduled actions by time: events of the world before steps of jobs, otherwise in the order of scheduling.

It also schedules passes of the worker's loop, which check waiting jobs, create jobs of agent loops, and poll when idle
(behaviour 10). An agentic loop keeps as many jobs waiting to start as its queue has items.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from statek_sim.clock import Clock
from statek_sim.errors import RunawayJob, StatekSimError
from statek_sim.runtime.agents.agent import Agent, JobDef
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus, WorkerKilled
from statek_sim.runtime.state.tool_loop import Timer

EVENT: Final = 0
STEP: Final = 1


@dataclass(frozen=True, order=True, slots=True)
class Due:
    """One agenda entry; `seq` keeps equal entries in insertion order."""

    at: float
    priority: int
    seq: int
    action: Callable[[], object] = field(compare=False)
    timer: Timer | None = field(default=None, compare=False)
    """The timer of an async tool; the entry is no longer due once it is cancelled."""


class Agenda:
    """Actions at virtual seconds, ordered by `(at, priority, seq)`."""

    def __init__(self) -> None:
        self._seq = 0
        self._due: list[Due] = []

    def add(
        self, when: float, priority: int, action: Callable[[], object], timer: Timer | None = None
    ) -> None:
        """Schedule `action` at virtual second `when`."""
        self._seq += 1
        heapq.heappush(self._due, Due(when, priority, self._seq, action, timer))

    @property
    def next_at(self) -> float | None:
        """The virtual second of the next entry, None without one; cancelled timers are skipped."""
        while self._due and (timer := self._due[0].timer) is not None and timer.cancelled():
            heapq.heappop(self._due)
        return self._due[0].at if self._due else None

    def take(self) -> Due:
        """Remove and return the next entry."""
        return heapq.heappop(self._due)

    def next_event(self, end: float) -> Due | None:
        """Return the next event of the world that is due by virtual second `end`, without removing it."""
        return min((due for due in self._due if due.priority == EVENT and due.at <= end), default=None)

    def strike(self, due: Due) -> None:
        """Remove one entry, wherever it is."""
        self._due.remove(due)
        heapq.heapify(self._due)

    def forget_steps(self) -> None:
        """Keep only the events of the world, because the waits of steps die with their process."""
        self._due = [due for due in self._due if due.priority == EVENT]
        heapq.heapify(self._due)


_NEVER: Final = -1.0
"""A time before any virtual time."""


class AgentLoop:
    """An agent's loop.

    `definition` is the job definition that this worker process checks; errors on it end the loop and the worker.
    """

    def __init__(
        self,
        agent: Agent,
        warmup_code: WarmupSource,
        definition: JobDef,
        queue_size: Callable[[], int],
        *,
        jobs: Mapping[str, Job],
        create: Callable[..., Job],
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
        """Jobs started at the time `_at` since the queue's length became `_shortest`, its minimum at that time."""
        self._starting: list[Job] = []
        self._seen = 0
        definition.clear_errors()

    def begin_anew(self, definition: JobDef) -> None:
        """Use a definition without errors, as a restarted process does."""
        self.definition = definition
        definition.clear_errors()

    def saved(self) -> dict[str, object]:
        """Return its definition, and how many jobs it has seen and started."""
        return {
            "definition": self.definition,
            "at_once": [self._at, self._shortest, self._started],
            "starting": [job.id for job in self._starting],
            "seen": self._seen,
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Continue from where another process `saved` it."""
        self.definition = saved["definition"]
        # The state of earlier releases has only the number of jobs.
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
        # A started job never waits to start again.
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


PASS_SECONDS: Final = 0.3
"""Virtual seconds between two passes of an idle loop over futures that must be polled (the loop's sleep)."""

MOST_IDLE_POLLS: Final = 12_000
"""Maximum polls of waiting jobs while nothing else happens: one hour of virtual time."""


class PollLoop:
    """The part of a pass before its round. `hooks` are called with the free capacity, and let loops create jobs."""

    def __init__(self, services: Services, agenda: Agenda, most_idle: int) -> None:
        self._services = services
        self._agenda = agenda
        self._most_idle = most_idle
        self._idle = 0
        self.passing = False
        self.hooks: list[Callable[[int], None]] = []

    def something_happens(self) -> None:
        """Restart the count of idle polls."""
        self._idle = 0

    def begin(self, offer: Callable[[Job], None], capacity: Callable[[], int]) -> str | None:
        """Wake jobs whose future is ready and let loops create jobs.

        Return the error that the loop died of, if it did.
        """
        self.passing = True
        try:
            for job in self._services.waiting.candidates():
                future = job.awaited_result
                if future is not None and self._asks_about(job) and future.check_condition():
                    self._services.release(job)
                    offer(job)
            for hook in self.hooks:
                hook(capacity())
        except StatekSimError:
            raise
        except WorkerKilled as death:
            return str(death)
        except Exception as error:  # noqa: BLE001  # a condition or a queue size: the user's code
            return f"the worker loop died of {type(error).__name__}: {error}"
        finally:
            self.passing = False
        return None

    def _asks_about(self, job: Job) -> bool:
        """Return whether the loop polls the future that the job waits for.

        Waiting in warmup before 1.3.2 is not a wait at all: the loop just enters the block again.
        """
        return self._services.profile.waiting_job_is_dormant or job.life.status is JobStatus.SUSPENDED

    def poll_again(self) -> bool:
        """Advance a little time for futures that must be polled; return whether there are any worth polling.

        Their conditions may depend on the time. After a while in which nothing else happens they count as waiting
        forever.
        """
        if not self._services.waiting.polls or self._idle >= self._most_idle:
            return False
        self._idle += 1
        self._agenda.add(self._services.clock.now() + PASS_SECONDS, STEP, lambda: None)
        return True
