"""What error handlers were called with, as the trace of the reference runtime tells it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import statek

from statek_sim.backends.installed.stored_value import shown


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
