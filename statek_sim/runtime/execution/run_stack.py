"""One run from its beginning to its end, on a call stack of its own where it may have to stop in between.

Async tools are waited for from inside of model-written code, as in STATEK, so a run that stops at a given time while
one is waited for has to leave all those calls as they are. Only then is greenlet, a package with compiled code, needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from statek_sim.clock import FOREVER
from statek_sim.runtime.execution.suspension import Progress
from statek_sim.runtime.state.tool_loop import in_charge

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


class RunStack:
    """Calls `begin` once, then `advance` until that makes no more progress."""

    def __init__(self, begin: Callable[[], None], advance: Callable[[], Progress]) -> None:
        self._begin = begin
        self._advance = advance
        self._runs = 0
        self._unwinding = False
        self._stack: SeparateStack[bool] | None = None

    @property
    def running(self) -> bool:
        """Whether jobs are being stepped, so that there is somebody to let time pass."""
        return self._runs > 0

    @property
    def begun(self) -> bool:
        """Whether a run with an end in time was left in the middle."""
        return self._stack is not None

    def run(self, until: float) -> bool:
        """Run, or go on, to the end or to the virtual second `until`; return whether everything settled."""
        if self._stack is None:
            if until >= FOREVER:
                return self._run()
            self._stack = SeparateStack(self._run)
        return self._go_on()

    def pause(self) -> bool:
        """Return to whoever runs this, in the middle of waiting for an async tool; False if that cannot be."""
        if self._stack is None or not self._stack.is_current():
            return False
        self._stack.pause()
        return True

    def unwind(self) -> None:
        """End the calls that a run left in the middle."""
        if self._stack is None or self._stack.is_current():
            return
        self._unwinding = True
        try:
            self._go_on()
        finally:
            self._unwinding = False

    def _go_on(self) -> bool:
        """Go on on a stack of its own: a run with an end in time may have to stop while a tool is waited for."""
        assert self._stack is not None
        settled = False
        try:
            # Whoever runs this may have a running loop of his own.
            with in_charge(None):
                settled = bool(self._stack.go_on())
        finally:
            if self._stack.ended:
                self._stack = None
        return settled

    def _run(self) -> bool:
        self._runs += 1
        with in_charge(None):
            return self._run_on()

    def _run_on(self) -> bool:
        try:
            self._begin()
            while not self._unwinding:
                progress = self._advance()
                if progress is not Progress.MADE:
                    return progress is Progress.NOTHING_LEFT
            return False
        finally:
            self._runs -= 1
