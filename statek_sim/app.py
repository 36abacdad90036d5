"""`StatekApp`: the interface between a test and a STATEK application, on either backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from statek_sim.backends.application import AppJob, Application, AppOutcome
from statek_sim.clock import FOREVER
from statek_sim.errors import BadInput
from statek_sim.providers.protocol import ChatRequest, Provider
from statek_sim.providers.script import ScriptEntry
from statek_sim.providers.scripted import Script
from statek_sim.scriptable import ScriptableLLM, at_the_caller
from statek_sim.store.protocol import LEASE


class StatekApp:
    """The application under test: a script supplies its agents' replies, and its jobs run in virtual time.

    The application's own code creates agents and jobs, with `create_new_job` or otherwise. `run` steps the jobs. `job`
    and `jobs` return their state, in the same form on every backend.
    """

    def __init__(self, application: Application, llm: ScriptableLLM) -> None:
        self._application = application
        self._llm = llm
        self.backend = application.backend
        self.profile = application.profile

    # -- the model ---------------------------------------------------------------------------------------------

    @at_the_caller
    def script(self, everybody: Script | None = None, /, **by_role: Iterable[ScriptEntry]) -> None:
        """Set the replies for all agents or, by agent role, as in `script(dispatcher=["claim_next_ticket()"])`."""
        self._llm.script(everybody, **by_role)

    @at_the_caller
    def use(self, provider: Provider) -> None:
        """Send all further requests to `provider`."""
        self._llm.use(provider)

    @property
    def requests(self) -> tuple[ChatRequest, ...]:
        """Every request so far, oldest first."""
        return tuple(self._llm.requests)

    # -- running -----------------------------------------------------------------------------------------------

    @at_the_caller
    def create_job(self, agent: Any, **options: Any) -> Any:
        """Create a job as `statek.create_new_job` does, and return it.

        `name` is its name in the test, by default "job-1" and so on. `message` is the first user message it receives.
        """
        return self._application.create_job(agent, **options)

    @at_the_caller
    def keep_in(
        self,
        address: str,
        *,
        agents: Sequence[Any],
        run: str = "main",
        restart: float = 0.0,
        lease: float = LEASE,
    ) -> bool:
        """Keep jobs and stored objects in a store (`sqlite:PATH`); call this before the first job (docs/durability.md).

        Returns whether the store already contained the run, which is then resumed, as after a kill. `agents` lists all
        agents. Every process must pass them in the same order and run the same code up to this call. Only the reference
        runtime supports this, because the installed package has its own store.
        """
        return self._application.keep_in(address, agents=agents, run=run, restart=restart, lease=lease)

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`, for example to send a message."""
        self._application.at(when, action)

    @at_the_caller
    def run(self, until: float = FOREVER) -> AppOutcome:
        """Run until every job is DONE or waits for something that no scheduled event provides, or until `until`.

        Waiting jobs' conditions are checked at every event, and once more at `until`.
        """
        if until < FOREVER:
            self._application.at(until, _look)
        return self._application.run(until)

    @property
    def now(self) -> float:
        """The virtual time in seconds since the test started."""
        return self._application.now()

    # -- results -----------------------------------------------------------------------------------------------

    @property
    def jobs(self) -> tuple[AppJob, ...]:
        """All jobs in order of creation, including jobs created by the application's own code."""
        return tuple(self._application.describe(job) for job in self._application.jobs().values())

    @at_the_caller
    def job(self, job: Any) -> AppJob:
        """Return a job's current state, given its name or the application's job object."""
        if not isinstance(job, str):
            return self._application.describe(job)
        known = self._application.jobs()
        if job not in known:
            raise BadInput(f"there is no job {job!r}; jobs: {', '.join(known) or 'none'}")
        return self._application.describe(known[job])

    @at_the_caller
    def job_of(self, role: str) -> AppJob:
        """Return the only job whose agent has this role; raises `BadInput` unless there is exactly one."""
        found = [job for job in self.jobs if job.agent == role]
        if len(found) != 1:
            names = ", ".join(f"{job.name} of {job.agent}" for job in self.jobs) or "none"
            raise BadInput(f"there are {len(found)} jobs of agent {role!r}, expected one; jobs: {names}")
        return found[0]


def _look() -> None:
    """Do nothing; scheduled only so that time advances to this second."""


__all__ = ["FOREVER", "StatekApp"]
