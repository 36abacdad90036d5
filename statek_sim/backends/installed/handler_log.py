"""What error handlers were called with, as the trace of the reference runtime tells it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import statek
from statek.agents import Agent, DialogAgent
from statek.executors.job import Job
from statek.future import FutureResult


def shown(value: Any) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error.

    A job, an agent or a future shows its private fields, which are the runtime's own matter: here it is named.
    """
    if isinstance(value, Job):
        return "<Object>"
    if isinstance(value, FutureResult):
        return f"{type(value).__name__}(a future)"
    if isinstance(value, Agent):
        kind = "DialogAgent" if isinstance(value, DialogAgent) else "Agent"
        return f'{kind}(role="{value.role}")'
    try:
        # Agent code may not look into everything, and STATEK may be in the middle of some.
        with statek.as_unrestricted():
            return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


class HandlerLog:
    """Watches error handlers; `tell(job, name, context, error, failed)` hears of every call."""

    def __init__(self) -> None:
        self.tell: Callable[[Any, str, str, str | None, str | None], None] = _unheard

    def watching(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Return `handler` with its calls written down."""

        @wraps(handler)
        def watched(context: Any, error: Any = None) -> None:
            # As it was before the handler changed it.
            before, told = shown(context), None if error is None else str(error)
            failed: str | None = None
            try:
                handler(context, error=error)
            except Exception as failure:
                failed = f"{type(failure).__name__}: {failure}"
                raise
            finally:
                self.tell(statek.get_current_job(), handler.__name__, before, told, failed)

        return watched


def _unheard(*_: object) -> None:
    """Nobody listens before a run begins."""
