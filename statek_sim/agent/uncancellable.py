"""Tasks whose code goes on when it is cancelled: how long they are waited for, and how they are ended then."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import Any, Final

GRACE: Final = 5.0
"""Seconds that code has for its end after it was cancelled, before it is closed where it waits."""

_WAKING: Final = 3
"""Passes of an event loop in which a task that was woken finds its coroutine closed."""


async def cancelled_in_time(task: asyncio.Task[Any], grace: float) -> bool:
    """Cancel a task and give it `grace` seconds for its end, then close it; return whether it is over."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
    return await closed(task)


async def closed(task: asyncio.Task[Any]) -> bool:
    """Close a task's coroutine where it waits, unless the task is done; return whether it is over.

    Code that catches `GeneratorExit` as well cannot be ended by anybody. It is taken off asyncio's list of tasks then:
    `asyncio.run` would wait for it at the program's end, for ever.
    """
    if task.done():
        return True
    coroutine: Any = task.get_coro()
    # What a user's code raises on its way out is nobody's; whether it has ended is seen below.
    with suppress(Exception, asyncio.CancelledError, SystemExit):
        coroutine.close()
    task.add_done_callback(_looked_at)
    task.cancel()
    for _ in range(_WAKING):
        await asyncio.sleep(0)
        if task.done():
            return True
    asyncio.tasks._unregister_task(task)
    return False


class closed_late:  # noqa: N801  # used as a function is, like `contextlib.suppress`
    """Closes what is awaited inside when it goes on `grace` seconds after a timeout of `seconds` cancelled it.

    It belongs inside of `asyncio.timeout(seconds)`, and its end is that one's `TimeoutError`. Without a timeout, or for
    what is no coroutine, it does nothing.
    """

    def __init__(self, work: object, seconds: float | None, grace: float = GRACE) -> None:
        self._work: Any = work
        self._after = None if seconds is None or not inspect.iscoroutine(work) else seconds + grace
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._before = 0
        self._forced = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        if self._after is not None and self._task is not None:
            self._before = self._task.cancelling()
            self._timer = asyncio.get_running_loop().call_later(self._after, self._force, self._task)

    def _force(self, task: asyncio.Task[Any]) -> None:
        self._forced = True
        with suppress(Exception, asyncio.CancelledError, SystemExit):
            self._work.close()
        task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._forced or self._task is None:
            return
        # One cancellation was this one's, and one the timeout's; a third is somebody else's.
        if self._task.uncancel() > self._before + 1:
            raise asyncio.CancelledError from None
        raise TimeoutError from None


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Take the error of a task that nobody waits for any more, so that asyncio does not complain of it."""
    if not task.cancelled():
        task.exception()
