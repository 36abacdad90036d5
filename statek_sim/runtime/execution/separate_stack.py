"""Work with a stack of calls of its own, which can be left in the middle and gone on with later.

Async tools are waited for from inside of model-written code, as in STATEK, so a run that stops at a given time while
one is waited for has to leave all those calls as they are. Only then is greenlet, a package with compiled code, needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SeparateStack(Generic[T]):
    """`work` on its own stack. `go_on` begins or continues it; `work` itself may `pause`."""

    def __init__(self, work: Callable[[], T]) -> None:
        # Not at the top: most runs have no end in time and need no second stack.
        import greenlet  # type: ignore[import-untyped]  # noqa: PLC0415

        self._greenlet: Any = greenlet
        self._calls: Any = greenlet.greenlet(work)
        self._calls.gr_context = copy_context()
        self._outside = self._deeper = 0

    @property
    def ended(self) -> bool:
        """Whether the work is over."""
        return bool(self._calls.dead)

    def is_current(self) -> bool:
        """Return whether this is asked from the work itself."""
        return self._greenlet.getcurrent() is self._calls

    def go_on(self) -> T | None:
        """Let the work go on until it pauses (None) or ends; what it raises is raised here."""
        self._calls.parent = self._greenlet.getcurrent()
        # Python has one recursion limit for all stacks: what the work added to it is there while the work goes on.
        outside = self._outside = sys.getrecursionlimit()
        sys.setrecursionlimit(outside + self._deeper)
        try:
            result: T | None = self._calls.switch()
        finally:
            sys.setrecursionlimit(outside)
        return result

    def pause(self) -> None:
        """Leave the work as it is; returns when somebody goes on with it."""
        self._deeper = sys.getrecursionlimit() - self._outside
        self._calls.parent.switch()
