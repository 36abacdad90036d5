"""What tools do, as trace events."""

from __future__ import annotations

from collections.abc import Mapping

from statek_sim import trace as events
from statek_sim.runtime.state.context import current_execution
from statek_sim.runtime.state.host import CurrentJob
from statek_sim.runtime.state.shown import shown
from statek_sim.sandbox.ordered_set import without_addresses


def record_call(job: CurrentJob, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Record that a tool begins to run. Code that calls it pays, or is stopped."""
    execution = current_execution()
    if execution is not None and execution.budget is not None:
        execution.budget.call_tool()
    arguments = [_argument(value) for value in args]
    arguments += [f"{key}={_argument(value)}" for key, value in kwargs.items() if key != "_local_context"]
    via, job.tool_via = job.tool_via, "code"
    job.host.trace.add(events.ToolCalled(job.host.clock.now(), job.id, name, ", ".join(arguments), via))


def record_result(job: CurrentJob, name: str, result: object) -> None:
    """Record what a tool returned."""
    _record_end(job, name, shown(result), None)


def record_failure(job: CurrentJob, name: str, error: str) -> None:
    """Record how a tool failed, as `Type: message`."""
    _record_end(job, name, None, without_addresses(error))


def _record_end(job: CurrentJob, name: str, result: str | None, error: str | None) -> None:
    job.host.trace.add(events.ToolReturned(job.host.clock.now(), job.id, name, result, error))
    job.host.tool_returned(job, name)


def record_delivery(job: CurrentJob, body: object, media: object) -> None:
    """Record what a dialog agent sent to its user."""
    attachment = None if media is None else shown(media)
    job.host.trace.add(events.Delivered(job.host.clock.now(), job.id, shown(body), attachment))


def _argument(value: object) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
