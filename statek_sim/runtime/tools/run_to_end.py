"""Running an async tool that no run of a runtime can wait for, because a test calls it: to its end, at once.

`asyncio.sleep(60)` costs no wall time there. Tools that jobs call are waited for by the scheduler instead
(`execution.suspension`).
"""

from __future__ import annotations

import heapq
from collections.abc import Coroutine
from typing import Any, TypeVar

from statek_sim.errors import AsyncToolStuck
from statek_sim.runtime.state.tool_loop import STUCK, Timer, ToolLoop

T = TypeVar("T")


class _Timers:
    """The clock of one call: it jumps from timer to timer. Equal times come in the order in which they were planned."""

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Timer]] = []
        self._seq = 0

    def plan(self, timer: Timer) -> None:
        """Take a timer in."""
        self._seq += 1
        heapq.heappush(self._planned, (timer.when(), self._seq, timer))

    def next(self) -> Timer:
        """Go to the next timer; without one nothing can ever happen."""
        while self._planned:
            when, _, timer = heapq.heappop(self._planned)
            if not timer.cancelled():
                self.now = max(self.now, when)
                return timer
        raise AsyncToolStuck(STUCK)


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end and return its result; tasks that it did not await are cancelled.

    Works inside a running event loop too (a user's async test), which it leaves as it was.
    """
    timers = _Timers()
    loop = ToolLoop(lambda: timers.now, timers.plan)
    try:
        task = loop.start(coroutine)
        loop.do_ready()
        while not task.done():
            loop.fire(timers.next())
        result: T = task.result()
        return result
    finally:
        loop.give_up()
