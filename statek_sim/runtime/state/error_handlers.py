"""Error handlers: functions that release claimed work when a job dies. Child jobs inherit them.

Source: "Error Handling", Job Error Handlers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.runtime.state.access import attribute, ended_in
from statek_sim.runtime.state.context import CurrentJob
from statek_sim.runtime.stored.containers import List
from statek_sim.sandbox.llm_repr import shown
from statek_sim.sandbox.ordered_set import without_addresses


@dataclass(frozen=True, slots=True)
class ErrorHandler:
    """A handler and the context it is called with. A handler runs at most once for each job that holds it."""

    error_handler: Callable[..., object]
    context: object

    @property
    def name(self) -> str:
        """The name of the handler function."""
        return getattr(self.error_handler, "__name__", type(self.error_handler).__name__)

    def __call__(self, error: BaseException | None = None) -> Exception | None:
        """Run the handler. An exception that it raises is returned instead of propagated ("Error Handling")."""
        # As in STATEK, the decorator suppresses exceptions; call the decorated function to get them.
        target = getattr(self.error_handler, _BODY, self.error_handler)
        try:
            target(self.context, error=error)
        except Exception as failure:  # noqa: BLE001  # the user's handler
            return failure
        return None


_BODY: Final = "__error_handler_body__"
_VARIADIC: Final = frozenset({inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL})


def error_handler(function: Callable[..., object]) -> Callable[..., None]:
    """Mark `function(context, error=None)` as an error handler; exceptions it raises are suppressed."""

    @functools.wraps(function)
    def wrapper(context: object, error: BaseException | None = None) -> None:
        try:
            function(context, error=error)
        except Exception:  # noqa: BLE001, S110  # STATEK suppresses the exceptions of handlers
            pass

    wrapper.is_error_handler = True  # type: ignore[attr-defined]  # STATEK's own marker
    setattr(wrapper, _BODY, function)
    return wrapper


def is_valid_error_handler(candidate: Any) -> bool:
    """Return whether `candidate` follows the handler protocol of "Error Handling".

    It must be decorated with `@error_handler`, have a name that starts with `_`, and take exactly two
    parameters, the second being optional.
    """
    return handler_problem(candidate) is None


def handler_problem(candidate: Any) -> str | None:
    """Describe why `candidate` is not a valid error handler, or return None if it is valid."""
    if not callable(candidate):
        return f"is {type(candidate).__name__}, expected a function"
    if not getattr(candidate, "is_error_handler", False):
        return "is not decorated with @error_handler"
    if not candidate.__name__.startswith("_"):
        return "needs a name that starts with '_'"
    try:
        parameters = inspect.signature(candidate).parameters.values()
    except (TypeError, ValueError):
        return "has no readable signature"
    named = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    if len(named) != 2:
        return f"takes {len(named)} parameters, expected (context, error=None)"
    if named[1].default is inspect.Parameter.empty:
        return f"needs a default for {named[1].name!r}, expected (context, error=None)"
    return None


class HandlerList:
    """A job's error handlers, in registration order; each runs at most once."""

    __slots__ = ("_handlers", "_job")

    def __init__(self, job: CurrentJob) -> None:
        self._job = job
        self._handlers: list[ErrorHandler] = []

    def __len__(self) -> int:
        return len(self._handlers)

    def __iter__(self) -> Iterator[ErrorHandler]:
        return iter(self._handlers)

    def __getitem__(self, index: int) -> ErrorHandler:
        found: ErrorHandler = List._of(self._handlers)[index]
        return found

    def add(self, error_handler: Callable[..., object], context: object) -> None:
        """Register a handler with its context in stored form; raises the store's error for a rejected context."""
        handler = ErrorHandler(error_handler, self._stored(context))
        self._handlers.append(handler)
        host = self._job.host
        host.trace.add(
            events.HandlerRegistered(host.clock.now(), self._job.id, handler.name, shown(handler.context))
        )

    def _stored(self, context: Any) -> Any:
        if not self._job.py_env.stores:
            return context
        found = attribute(context)
        if found.error is not None:
            raise ended_in("ErrorHandler.__init__") from found.error
        return found.value

    def copy_from(self, other: HandlerList) -> None:
        """Add another job's current handlers; handlers that the other job registers later are not added."""
        self._handlers.extend(other)

    def notify(self, error: BaseException | None) -> None:
        """Clear the list, then run every handler, oldest first; exceptions they raise are only recorded."""
        handlers, self._handlers = self._handlers, []
        if handlers:
            self._job.host.trace.passed("handlers taken off", self._job.id)
        for handler in handlers:
            self._run(handler, error)

    def _run(self, handler: ErrorHandler, error: BaseException | None) -> None:
        context = shown(handler.context)
        failure = handler(error)
        failed = None if failure is None else without_addresses(f"{type(failure).__name__}: {failure}")
        reason = None if error is None else without_addresses(str(error))
        host = self._job.host
        host.trace.add(
            events.HandlerRan(host.clock.now(), self._job.id, handler.name, context, reason, failed)
        )

    def bind_latest_input(self, adapter: Callable[..., object] | None, context: object) -> None:
        """Register `adapter` for the latest input, replacing the previous input's adapter.

        Without an `adapter`, an inherited adapter is registered for the latest input.
        """
        for entry in self._handlers:
            if adapter is None and isinstance(entry.error_handler, LatestInput):
                adapter = entry.error_handler.adapter
        self._handlers = [
            entry for entry in self._handlers if not isinstance(entry.error_handler, LatestInput)
        ]
        if adapter is not None:
            # STATEK stores the input in a tuple with the adapter, so the store rejects a lambda with a
            # different message.
            _, kept = self._stored((adapter, context))
            self.add(LatestInput(adapter), kept)


class LatestInput:
    """The error handler for a job's latest input, replaced by the next input."""

    __slots__ = ("adapter",)
    __name__ = "critical_error_handler"

    def __init__(self, adapter: Callable[..., object]) -> None:
        self.adapter = adapter

    def __call__(self, context: object, error: BaseException | None = None) -> None:
        """Call the agent's adapter `critical_error_handler`."""
        self.adapter(context, error=error)
