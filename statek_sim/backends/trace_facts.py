"""Facts of a run that its trace alone can tell, whichever runtime it comes from."""

from __future__ import annotations

from collections.abc import Iterable

from statek_sim import trace as events
from statek_sim.backends.record import HandlerCall
from statek_sim.values import JSON


def handler_calls(trace: Iterable[events.Event]) -> tuple[HandlerCall, ...]:
    """Return the calls of error handlers, in order."""
    return tuple(
        HandlerCall(
            job=event.job, name=event.name, context=event.context, error=event.error, failed=event.failed
        )
        for event in trace
        if isinstance(event, events.HandlerRan)
    )


def tool_calls(trace: Iterable[events.Event]) -> tuple[dict[str, JSON], ...]:
    """Return one job's tool calls with how each ended; a call that never returned has neither."""
    calls: list[dict[str, JSON]] = []
    open_calls: list[dict[str, JSON]] = []
    for event in trace:
        if isinstance(event, events.ToolCalled):
            call: dict[str, JSON] = {"name": event.name, "arguments": event.arguments, "via": event.via}
            calls.append(call)
            open_calls.append(call)
        elif isinstance(event, events.ToolReturned) and open_calls:
            open_calls.pop()["error" if event.error is not None else "result"] = event.error or event.result
    return tuple(calls)


def stop_reason(trace: Iterable[events.Event]) -> str | None:
    """Return why one job's last unit ended; None while it goes on."""
    reason: str | None = None
    for event in trace:
        if isinstance(event, events.JobStopped):
            reason = event.reason
        elif isinstance(event, events.Reactivated):
            reason = None
    return reason
