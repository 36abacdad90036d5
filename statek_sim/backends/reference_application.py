"""The application under test on the reference runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statek_sim.backends.application import FUTURE, AppJob, AppOutcome, app_job
from statek_sim.backends.facts import job_record, plain, worker_death
from statek_sim.durability.persistence import KeptRuntime
from statek_sim.errors import BadInput
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.sandbox.llm_repr import shown


class ReferenceApplication:
    """See `Application`. Jobs are those of `runtime`, created by `create`, the runtime's own way unless said.

    `keep` keeps them in a store, as `LabRuntime.keep_in` does.
    """

    backend = "reference"

    def __init__(
        self,
        runtime: Runtime,
        create: Callable[..., Job] | None = None,
        keep: Callable[..., KeptRuntime] | None = None,
    ) -> None:
        self.runtime = runtime
        self._keep = keep
        self._create = runtime.create_job if create is None else create
        self.profile = runtime.profile.name

    def create_job(self, agent: Any, **options: Any) -> Job:
        """Create a job."""
        return self._create(agent, **options)

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do `action` at virtual second `when`."""
        self.runtime.at(when, action)

    def run(self, until: float) -> AppOutcome:
        """Run until nothing is left to do, or virtual second `until`."""
        outcome = self.runtime.run(until)
        return AppOutcome(
            at=outcome.at,
            settled=outcome.settled,
            waiting=outcome.waiting,
            worker=None if outcome.worker_alive else worker_death(self.runtime),
        )

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Keep everything in a store; return whether the store had something."""
        if self._keep is None:
            raise BadInput(f"keep_in({address!r}): this application's runtime is not kept")
        return self._keep(address, agents=agents, **options).resumed

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self.runtime.clock.now()

    def jobs(self) -> Mapping[str, Job]:
        """Return all jobs by name."""
        return {job.id: job for job in self.runtime.jobs}

    def describe(self, job: Job) -> AppJob:
        """Return what there is to say about a job."""
        record = job_record(job, (other for other in self.runtime.jobs if other.parent_job is job))
        values = {name: plain(value, _text) for name, value in sorted(job.locals.items())}
        return app_job(
            replace(record, locals=values),
            parent=None if job.parent_job is None else job.parent_job.id,
            tools=job.host.tools_of(job),
        )


def _text(value: object) -> str:
    return FUTURE if isinstance(value, FutureResult) else shown(value)
