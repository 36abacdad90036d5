"""The agenda of scheduled actions, the loops that create agents' jobs, and the polling of waiting jobs.

Actions due at the same time are ordered: external events before job steps, otherwise in the order of
scheduling. Each pass of the worker's loop checks waiting jobs and lets agent loops create jobs. An agent loop
creates jobs until the number of jobs waiting to start equals the number of items in its queue (behaviour 10).
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
    """A scheduled action. `seq` keeps entries with the same time and priority in insertion order."""

    at: float
    priority: int
    seq: int
    action: Callable[[], object] = field(compare=False)
    timer: Timer | None = field(default=None, compare=False)
    """The async tool's timer, if the action belongs to a timer. Cancelling the timer invalidates the entry."""


class Agenda:
    """A priority queue of scheduled actions, ordered by `(at, priority, seq)`."""

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
        """The virtual second of the next entry, ignoring cancelled timers, or None."""
        while self._due and (timer := self._due[0].timer) is not None and timer.cancelled():
            heapq.heappop(self._due)
        return self._due[0].at if self._due else None

    def take(self) -> Due:
        """Remove and return the next entry."""
        return heapq.heappop(self._due)

    def next_event(self, end: float) -> Due | None:
        """Return the next external event due by virtual second `end`, without removing it, or None."""
        return min((due for due in self._due if due.priority == EVENT and due.at <= end), default=None)

    def strike(self, due: Due) -> None:
        """Remove an entry, wherever it is in the queue."""
        self._due.remove(due)
        heapq.heapify(self._due)

    def forget_steps(self) -> None:
        """Remove all entries except external events, because the worker process ended."""
        self._due = [due for due in self._due if due.priority == EVENT]
        heapq.heapify(self._due)


_NEVER: Final = -1.0
"""Earlier than any virtual time."""


class AgentLoop:
    """Creates an agent's jobs for the items in a queue.

    `definition` is the job definition that the loop checks; an error on it ends the loop and the worker.
    `most_at_once` is the maximum number of jobs that may start at the same time while the queue does not get
    shorter.
    """

    def __init__(
        self,
        agent: Agent,
        warmup_code: WarmupSource,
        definition: JobDef,
        queue_size: Callable[[], int],
        *,
        jobs: Mapping[str, Job],
        create: Callable[[JobDef], object],
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
        """Number of jobs started at time `_at` since the queue reached its minimum length, `_shortest`."""
        self._starting: list[Job] = []
        self._seen = 0
        definition.clear_errors()

    def begin_anew(self, definition: JobDef) -> None:
        """Replace the definition and clear its errors, as a restarted process does."""
        self.definition = definition
        definition.clear_errors()

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process: the definition and the job counts."""
        return {
            "definition": self.definition,
            "at_once": [self._at, self._shortest, self._started],
            "starting": [job.id for job in self._starting],
            "seen": self._seen,
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state saved by another process."""
        self.definition = saved["definition"]
        self._at, self._shortest, self._started = saved["at_once"]
        self._starting = [self._jobs[name] for name in saved["starting"]]
        self._seen = saved["seen"]

    def start_jobs(self, capacity: int) -> None:
        """Create jobs, at most `capacity`, until one job is waiting to start for each item in the queue.

        Raises RuntimeError if the definition has an error, and `RunawayJob` if jobs finish without taking an
        item.
        """
        if self.definition.has_errors():
            raise RuntimeError(
                f"Job definition for agent '{self.agent.role}' has errors — aborting agentic loop"
            )
        if capacity <= 0:
            return
        waiting, size = self._waiting_to_start(), self._queue_size()
        for _ in range(min(capacity, size - waiting)):
            self._note_start(size)
            self._create(self.definition)

    def _waiting_to_start(self) -> int:
        created = islice(self._jobs.values(), self._seen, None)
        self._starting.extend(job for job in created if job.agent is self.agent)
        self._seen = len(self._jobs)
        # A job that has started never returns to the waiting jobs.
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
                f"the loop of agent {self.agent.role!r} started {self._most_at_once:,} jobs at "
                f"{now:g} s, but its queue never had fewer than {self._shortest} items: the jobs "
                "finish without taking an item"
            )


PASS_SECONDS: Final = 0.3
"""Virtual seconds between passes of an idle worker loop, which polls futures on each pass."""

MOST_IDLE_POLLS: Final = 12_000
"""Maximum consecutive polls while nothing else happens: one hour of virtual time."""


class PollLoop:
    """The first part of each worker loop pass: checks waiting jobs, then calls the hooks.

    Each hook receives the number of jobs that may still start.
    """

    def __init__(self, services: Services, agenda: Agenda, most_idle: int) -> None:
        self._services = services
        self._agenda = agenda
        self._most_idle = most_idle
        self._idle = 0
        self.passing = False
        self.hooks: list[Callable[[int], None]] = []
        self.error: Exception | None = None
        """The error that ended the worker's loop."""

    def something_happens(self) -> None:
        """Reset the count of idle polls."""
        self._idle = 0

    def begin(self, offer: Callable[[Job], None], capacity: Callable[[], int]) -> str | None:
        """Offer the jobs whose future is ready, and let loops create jobs.

        If an error ended the worker's loop, return the reason, otherwise None.
        """
        self.passing = True
        try:
            for job in self._services.waiting.candidates():
                future = job.awaited_result
                if future is not None and self._checks_future_of(job) and future.check_condition():
                    self._services.release(job)
                    offer(job)
            for hook in self.hooks:
                hook(capacity())
        except StatekSimError:
            raise
        except WorkerKilled as death:
            return str(death)
        except Exception as error:  # noqa: BLE001  # a condition or a queue size: the user's code
            self.error = error
            return f"the worker loop died of {type(error).__name__}: {error}"
        finally:
            self.passing = False
        return None

    def _checks_future_of(self, job: Job) -> bool:
        """Return whether STATEK's loop checks the future that `job` is waiting for.

        Before 1.3.2, it does not check the future of a job in warmup, but reruns the warmup block.
        """
        return self._services.profile.waiting_job_is_dormant or job.life.status is JobStatus.SUSPENDED

    def poll_again(self) -> bool:
        """Advance virtual time slightly if any future must be polled; return whether polling should continue.

        Conditions may depend on the time. If nothing else happens for long enough, the jobs count as waiting
        forever.
        """
        if not self._services.waiting.polls or self._idle >= self._most_idle:
            return False
        self._idle += 1
        self._agenda.add(self._services.clock.now() + PASS_SECONDS, STEP, lambda: None)
        return True
