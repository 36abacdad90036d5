"""Virtual seconds: what would be slept is put on an agenda, events before the end of sleeps."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, Final

EVENT: Final = 0
STEP: Final = 1

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


async def let_others_run() -> None:
    """Let every task go on until it waits for something; each async tool on its way takes some turns of the loop."""
    for _ in range(12):
        await _yield(0)
