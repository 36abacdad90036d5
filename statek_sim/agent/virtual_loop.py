"""An event loop whose time is virtual: when nothing is left to do it goes to the next timer, one timer at a time.

Equal times come in the order in which their timers were made, which asyncio's own loops do not promise.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Set
from typing import Any, TypeVar

from statek_sim.agent.uncancellable import GRACE, cancelled_in_time
from statek_sim.clock import checked_moment
from statek_sim.errors import AsyncToolStuck

T = TypeVar("T")


MOST_PASSES = 1_000_000
"""Passes of a loop at one moment, after which time goes on all the same: code that never waits would stop it."""


class _Waiting:
    """Stands where a loop waits for sockets: instead of waiting, time goes on."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._passes = 0

    def select(self, timeout: float | None) -> list[object]:
        self._passes += 1
        if timeout is None or self._passes > MOST_PASSES:
            self._passes = 0
            self._loop.next_timer()
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop without sockets and threads. `moved` is told every new time."""

    def __init__(self, *, start: float = 0.0, moved: Callable[[float], None] | None = None) -> None:
        super().__init__()
        self._selector = _Waiting(self)
        self._now = start
        self._moved = moved
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._made = 0

    def time(self) -> float:
        """Return virtual seconds."""
        return self._now

    def __del__(self) -> None:
        """Close it: without sockets and threads nobody has to."""
        if not self.is_closed() and not self.is_running():
            self.close()

    def begin_at(self, seconds: float) -> None:
        """Let time be `seconds`, also earlier ones, for work that begins; timers of work that ended are forgotten."""
        self._now = seconds
        self._timers.clear()

    def call_at(  # type: ignore[override]  # typeshed's names of the arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Plan a callback; equal times come in the order in which they were planned."""
        timer = asyncio.TimerHandle(checked_moment(when), callback, args, self, context)
        self._made += 1
        heapq.heappush(self._timers, (when, self._made, timer))
        return timer

    def next_timer(self) -> None:
        """Go to the next timer that was not cancelled and make it ready; without one nothing can ever happen."""
        while self._timers:
            when, _, timer = heapq.heappop(self._timers)
            if timer.cancelled():
                continue
            if when > self._now:
                self._now = when
                if self._moved is not None:
                    self._moved(when)
            self._ready.append(timer)  # type: ignore[attr-defined]  # where asyncio keeps what it runs next
            return
        raise AsyncToolStuck(
            "async code awaits something that virtual time cannot bring "
            "(sockets, threads and subprocesses are not simulated); await timers or other coroutines"
        )

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is passed over when its time comes."""

    def _process_events(self, event_list: list[object]) -> None:
        """There are no file descriptors, so there are no events."""

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never sleeps."""


def run_in(loop: VirtualLoop, coroutine: Coroutine[Any, Any, T], *, close: bool = True) -> T:
    """Run `coroutine` to its end and close the loop; works inside a running loop too, which it leaves as it was.

    Without `close` the loop can be used again, and what is bound to it: locks, semaphores, a client's session.

    Tasks that it started and did not await are cancelled, and closed when they go on: nothing outlives the call.
    """
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        try:
            leftovers = asyncio.all_tasks(loop)
            if leftovers:
                loop.run_until_complete(_all_cancelled(leftovers))
        finally:
            if close:
                loop.close()
            asyncio._set_running_loop(outer)


async def _all_cancelled(tasks: Set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*(cancelled_in_time(task, GRACE) for task in tasks))
