"""`statek.testing.statek_context`: a current job or agent without a running step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from statek_sim.runtime.state.context import bound_context


@contextmanager
def statek_context(job: Any = None, agent: Any = None) -> Iterator[dict[str, Any]]:
    """Make `job` and `agent` the current ones inside the block; the agent is the job's unless another is given."""
    context: dict[str, Any] = {} if job is None else {"job": job}
    own = getattr(getattr(job, "job_def", None), "agent", None)
    if agent is not None or own is not None:
        context["agent"] = own if agent is None else agent
    with bound_context(context):
        yield context
