"""Virtual seconds: what would be slept is put on an agenda, events before the end of sleeps."""

from __future__ import annotations

import asyncio
import heapq
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, Final, cast

EVENT: Final = 0
STEP: Final = 1

_IDLE_ROUNDS: Final = 4
"""Rounds of the loop without work for anybody else; after them all tasks wait."""

_yield = asyncio.sleep


class VirtualTime:
    """A clock with an agenda, ordered by `(at, priority, seq)`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._agenda: list[tuple[float, int, int, Callable[[], Any]]] = []
        self._seq = 0

    def at(self, when: float, action: Callable[[], Any], *, priority: int = EVENT) -> None:
        """Do `action` at virtual second `when`."""
        self._seq += 1
        heapq.heappush(self._agenda, (when, priority, self._seq, action))

    @property
    def next_at(self) -> float | None:
        """When the next thing is due, None when nothing is."""
        return self._agenda[0][0] if self._agenda else None

    def do_next(self) -> None:
        """Go to the next due thing and do it."""
        when, _, _, action = heapq.heappop(self._agenda)
        self.now = max(self.now, when)
        action()

    def forget_steps(self) -> None:
        """Take off the agenda what a worker process would have done that is dead."""
        self._agenda = [due for due in self._agenda if due[1] != STEP]
        heapq.heapify(self._agenda)

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Stand in for `asyncio.sleep`."""
        if seconds <= 0:
            return await _yield(0, result)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not over.done():
                over.set_result(None)

        self.at(self.now + seconds, wake, priority=STEP)
        await over
        return result


async def allow_nested_runs() -> None:
    """Patch asyncio for loops in loops now, and not in the middle of the first call of an async tool, as STATEK does.

    There asyncio's own loop is in the middle of a round, and misses what the nested run took from it: an IndexError
    that ends the process. One job of a real worker has no such round, ten at once have one. The round in which our own
    driver waits would be one more, and nothing of STATEK's.
    """
    name = next(name for name in ("nest_asyncio2", "nest_asyncio") if importlib.util.find_spec(name))
    importlib.import_module(name).apply()
    await _yield(0)


async def let_others_run() -> None:
    """Let every task go on until it waits for something.

    An async tool runs the loop inside of its job's task, and we are called in there: so it is asked what is ready, a
    few times over, for between two calls of such tools nothing is.
    """
    ready = cast("Any", asyncio.get_running_loop())._ready
    idle = 0
    while idle < _IDLE_ROUNDS:
        await _yield(0)
        idle = 0 if ready else idle + 1
