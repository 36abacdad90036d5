"""The error handlers of one job, with their trace (003, Job Error Handlers)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from statek_sim import trace as events
from statek_sim.runtime.state.error_handlers import ErrorHandler
from statek_sim.runtime.state.shown import shown
from statek_sim.sandbox.ordered_set import without_addresses

if TYPE_CHECKING:
    from statek_sim.runtime.jobs.job import Job


class HandlerList:
    """Handlers in the order of registration; each runs at most once per job that holds it."""

    __slots__ = ("_handlers", "_job")

    def __init__(self, job: Job) -> None:
        self._job = job
        self._handlers: list[ErrorHandler] = []

    def __len__(self) -> int:
        return len(self._handlers)

    def __iter__(self) -> Iterator[ErrorHandler]:
        return iter(self._handlers)

    def add(self, error_handler: Callable[..., object], context: object) -> None:
        """Register a handler with its context."""
        handler = ErrorHandler(error_handler, context)
        self._handlers.append(handler)
        host = self._job.host
        host.trace.add(
            events.HandlerRegistered(host.clock.now(), self._job.id, handler.name, shown(handler.context))
        )

    def copy_from(self, other: HandlerList) -> None:
        """Take over what another job has registered so far; later registrations are not shared."""
        self._handlers.extend(other)

    def notify(self, error: BaseException | None) -> None:
        """Run every handler, oldest first, after clearing the list; what they raise goes no further."""
        handlers, self._handlers = self._handlers, []
        for handler in handlers:
            self._run(handler, error)

    def _run(self, handler: ErrorHandler, error: BaseException | None) -> None:
        context = shown(handler.context)
        failure = handler(error)
        failed = None if failure is None else without_addresses(f"{type(failure).__name__}: {failure}")
        told = None if error is None else without_addresses(str(error))
        host = self._job.host
        host.trace.add(events.HandlerRan(host.clock.now(), self._job.id, handler.name, context, told, failed))

    def bind_latest_input(self, context: object) -> None:
        """Replace the binding of the previous input; an inherited adapter stays when the agent has none."""
        adapter = self._job.agent.get_adapter("critical_error_handler")
        for entry in self._handlers:
            if adapter is None and isinstance(entry.error_handler, _LatestInput):
                adapter = entry.error_handler.adapter
        self._handlers = [
            entry for entry in self._handlers if not isinstance(entry.error_handler, _LatestInput)
        ]
        if adapter is not None:
            self.add(_LatestInput(adapter), context)


class _LatestInput:
    """The replaceable handler entry for a job's latest input."""

    __slots__ = ("adapter",)
    __name__ = "critical_error_handler"

    def __init__(self, adapter: Callable[..., object]) -> None:
        self.adapter = adapter

    def __call__(self, context: object, error: BaseException | None = None) -> None:
        self.adapter(context, error=error)
