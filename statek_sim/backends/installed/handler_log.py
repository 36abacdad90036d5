"""What error handlers were called with, as the trace of the reference runtime tells it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import statek

from statek_sim.values import JSON


def shown(value: Any) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error."""
    try:
        return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


class HandlerLog:
    """The calls in order. `job_named` returns the name of STATEK's current job."""

    def __init__(self) -> None:
        self.calls: list[JSON] = []
        self.job_named: Callable[[Any], str] = str

    def watching(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Return `handler` with its calls written down."""

        @wraps(handler)
        def watched(context: Any, error: Any = None) -> None:
            call: dict[str, JSON] = {
                "job": self.job_named(statek.get_current_job()),
                "name": handler.__name__,
                "context": shown(context),
                "error": None if error is None else str(error),
                "failed": None,
            }
            self.calls.append(call)
            try:
                handler(context, error=error)
            except Exception as failure:
                call["failed"] = f"{type(failure).__name__}: {failure}"
                raise

        return watched
