"""`statek.testing.statek_context`: a current job or agent without a running step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from statek_sim.runtime.context import job_context
from statek_sim.runtime.job import Job
from statek_sim.stand_in.not_covered import NotCovered


@contextmanager
def statek_context(job: Job | None = None, agent: Any = None) -> Iterator[dict[str, Any]]:
    """Make `job` the current one inside the block; an agent that is not the job's own is not covered."""
    if agent is not None and (job is None or agent is not job.agent):
        raise NotCovered("statek.testing.statek_context with another agent than the job's")
    with ExitStack() as stack:
        if job is not None:
            stack.enter_context(job_context(job))
        yield {} if job is None else {"job": job, "agent": job.agent}
