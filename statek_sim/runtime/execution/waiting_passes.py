"""Passes of the worker's loop: waiting jobs are asked about, agent loops make jobs, an idle loop looks again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from statek_sim.errors import StatekSimError
from statek_sim.runtime.execution.agenda import STEP, Agenda
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.containment import WorkerKilled
from statek_sim.runtime.state.status import JobStatus

PASS_SECONDS: Final = 0.3
"""Virtual seconds between two passes of an idle loop over futures that can only be asked (the loop's sleep)."""

MOST_IDLE_POLLS: Final = 12_000
"""How often waiting jobs are asked while nothing else happens: one hour of virtual time."""


class Passes:
    """What a pass does before it opens a round. `hooks` are called with the free capacity: loops create jobs there."""

    def __init__(self, services: Services, agenda: Agenda, most_idle: int) -> None:
        self._services = services
        self._agenda = agenda
        self._most_idle = most_idle
        self._idle = 0
        self.passing = False
        self.hooks: list[Callable[[int], None]] = []

    def something_happens(self) -> None:
        """Count idle polls anew."""
        self._idle = 0

    def begin(self, offer: Callable[[Job], None], capacity: Callable[[], int]) -> str | None:
        """Wake jobs whose future is ready and let loops create jobs; return what the loop died of, if it did."""
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
        """Return whether the loop asks the future that the job waits for.

        Waiting in warmup before 1.3.2 is no wait at all: the loop just enters the block again.
        """
        return self._services.profile.waiting_job_is_dormant or job.life.status is JobStatus.SUSPENDED

    def poll_again(self) -> bool:
        """Let a little time pass for futures that can only be asked; return whether there are any worth asking.

        Their conditions may depend on the time. After a while in which nothing else happens they count as waiting
        for ever.
        """
        if not self._services.waiting.polls or self._idle >= self._most_idle:
            return False
        self._idle += 1
        self._agenda.add(self._services.clock.now() + PASS_SECONDS, STEP, _nothing)
        return True


def _nothing() -> None:
    """Only let time pass."""
