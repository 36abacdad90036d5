"""Labels of events: how a place of a run is named, on any runtime. The real package's process imports it too."""

from __future__ import annotations

from statek_sim import trace as events
from statek_sim.trace import Event


def event_label(event: Event) -> str:
    """Return an event in a few words, without what differs in length."""
    match event:
        case events.StatusChanged(new=new):
            return f"status {new}"
        case events.ToolCalled(name=name) | events.ToolReturned(name=name):
            return f"{type(event).__name__} {name}"
        case events.HandlerRan(name=name) | events.HandlerRegistered(name=name):
            return f"{type(event).__name__} {name}"
        case events.WorldChanged(subject=subject, change=change):
            return f"{subject}: {change}"
        case events.JobStopped(reason=reason):
            return f"JobStopped {reason}"
        case _:
            return type(event).__name__
