"""One run from its beginning to its end, on a stack of calls of its own where it may have to stop in between."""

from __future__ import annotations

from collections.abc import Callable

from statek_sim.clock import FOREVER
from statek_sim.runtime.execution.separate_stack import SeparateStack
from statek_sim.runtime.execution.suspension import Progress
from statek_sim.runtime.state.tool_loop import in_charge


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
