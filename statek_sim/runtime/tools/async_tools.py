"""Running `async def` tools to completion in virtual time.

Each coroutine gets its own small event loop whose clock jumps to the next timer, so `asyncio.sleep(60)` costs no
wall time and nothing of another job can run in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from statek_sim.errors import AsyncToolStuck

T = TypeVar("T")


class _JumpingSelector:
    """Stands where an event loop waits for sockets: instead of waiting, time jumps."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise AsyncToolStuck(
                "an async tool awaits something that virtual time cannot bring "
                "(sockets, threads and subprocesses are not simulated); await timers or other coroutines"
            )
        self.now += max(timeout, 0.0)
        return []


class _VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without sockets whose time is the selector's."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _JumpingSelector()

    def time(self) -> float:
        return self._selector.now

    def _process_events(self, event_list: list[object]) -> None:
        """There are no file descriptors, so there are no events."""

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never sleeps."""


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run `coroutine` to its end and return its result and the virtual seconds it slept.

    Works inside a running event loop too (a user's async test), which it leaves as it was.
    """
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = _VirtualLoop()
    try:
        return loop.run_until_complete(coroutine), loop.time()
    finally:
        try:
            _cancel_leftovers(loop)
        finally:
            loop.close()
            asyncio._set_running_loop(outer)


def _cancel_leftovers(loop: _VirtualLoop) -> None:
    """Cancel tasks the tool started and did not await; they must not outlive its call."""
    leftovers = asyncio.all_tasks(loop)
    for task in leftovers:
        task.cancel()
    if leftovers:
        loop.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
