"""A guest's tools: called as they were, and noted in the trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from statek_sim import trace as events
from statek_sim.agent.tools.tool import result_text
from statek_sim.clock import VirtualClock
from statek_sim.trace import Trace


class RecordedTools:
    """Wraps functions so that their calls are noted; what they return and raise goes through as it is."""

    def __init__(self, trace: Trace, clock: VirtualClock, job: str) -> None:
        self._trace = trace
        self._clock = clock
        self._job = job
        self.calls: list[dict[str, str | None]] = []

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, recorded; a coroutine function stays one, and names, hints and docstring stay."""
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                record = self._called(function, args, kwargs)
                try:
                    value = await function(*args, **kwargs)
                except Exception as error:
                    self._ended(record, error=error)
                    raise
                self._ended(record, value=value)
                return value

            return awaited

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            record = self._called(function, args, kwargs)
            try:
                value = function(*args, **kwargs)
            except Exception as error:
                self._ended(record, error=error)
                raise
            self._ended(record, value=value)
            return value

        return called

    def _called(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, str | None]:
        name = function.__name__
        shown = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
        record: dict[str, str | None] = {"name": name, "arguments": shown}
        self.calls.append(record)
        self._trace.add(events.ToolCalled(self._clock.now(), self._job, name, shown, "call"))
        return record

    def _ended(
        self, record: dict[str, str | None], *, value: object = None, error: Exception | None = None
    ) -> None:
        failed = None if error is None else f"{type(error).__name__}: {error}"
        result = result_text(value) if error is None else None
        record["result" if error is None else "error"] = result if error is None else failed
        name = str(record["name"])
        self._trace.add(events.ToolReturned(self._clock.now(), self._job, name, result, failed))
