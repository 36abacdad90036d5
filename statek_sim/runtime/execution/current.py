"""Which runtime module-level functions such as `create_new_job` belong to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from statek_sim.errors import BadInput
from statek_sim.runtime.state.context import traced_job

if TYPE_CHECKING:
    from statek_sim.runtime.execution.runtime import Runtime

_RUNTIME: ContextVar[Any] = ContextVar("statek_sim_runtime", default=None)


@contextmanager
def active(runtime: Any) -> Iterator[None]:
    """Make `runtime` the one that module-level functions use inside the block."""
    token = _RUNTIME.set(runtime)
    try:
        yield
    finally:
        _RUNTIME.reset(token)


def current_runtime() -> Runtime:
    """Return the runtime of the executing job, else the active one; without either it is `BadInput`."""
    job = traced_job()
    runtime = _RUNTIME.get() if job is None else job.host
    if runtime is None:
        raise BadInput(
            "no runtime is active; create jobs with Runtime.create_job, or inside `with active(runtime)`"
        )
    return cast("Runtime", runtime)  # a job's host is a Runtime wherever jobs are created
