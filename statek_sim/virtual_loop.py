"""An event loop with virtual time: when no callback is ready, time advances to the next timer.

Timers due at the same time run in the order they were created, which asyncio's own loops do not guarantee.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Set
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from statek_sim.clock import checked_moment
from statek_sim.errors import AsyncToolStuck

GRACE: Final = 5.0
"""The time that cancelled code has to finish before its coroutine is closed, in seconds."""

_WAKING: Final = 3
"""The number of loop passes after which a woken task notices that its coroutine was closed."""


async def cancelled_in_time(task: asyncio.Task[Any], grace: float) -> bool:
    """Cancel a task, closing its coroutine if still running after `grace` seconds; return whether it has ended."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
    return await closed(task)


async def closed(task: asyncio.Task[Any]) -> bool:
    """Close the coroutine of an unfinished task; return whether the task has ended.

    Code that also catches `GeneratorExit` cannot be ended. Its task is then removed from asyncio's list of tasks,
    because `asyncio.run` would otherwise wait for it forever when the program ends.
    """
    if task.done():
        return True
    coroutine: Any = task.get_coro()
    # Ignore exceptions of user code while it is closed; the code below checks whether it has ended.
    with suppress(Exception, asyncio.CancelledError, SystemExit):
        coroutine.close()
    task.add_done_callback(_retrieve_error)
    task.cancel()
    for _ in range(_WAKING):
        await asyncio.sleep(0)
        if task.done():
            return True
    asyncio.tasks._unregister_task(task)
    return False


@contextmanager
def closed_late(work: object, seconds: float | None, grace: float = GRACE) -> Iterator[None]:
    """Close an awaited coroutine if it is still running `grace` seconds after a timeout of `seconds` cancelled it.

    Use this inside `asyncio.timeout(seconds)`, which then raises `TimeoutError`. Does nothing without a timeout, or for
    anything but a coroutine.
    """
    task = asyncio.current_task()
    if seconds is None or task is None or not inspect.iscoroutine(work):
        yield
        return
    before, forced = task.cancelling(), False

    def force() -> None:
        nonlocal forced
        forced = True
        with suppress(Exception, asyncio.CancelledError, SystemExit):
            work.close()
        task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds + grace, force)
    try:
        yield
    finally:
        timer.cancel()
        if forced:
            # One cancellation is ours, and one the timeout's; a third comes from other code.
            raise (asyncio.CancelledError if task.uncancel() > before + 1 else TimeoutError) from None


def _retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of a task that nothing awaits any more, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


T = TypeVar("T")

Timer = tuple[float, int, asyncio.TimerHandle]
"""A callback's virtual second, a number that orders callbacks within that second, and the callback's handle."""

STUCK: Final = (
    "async code awaits something that never happens in virtual time "
    "(sockets, threads and subprocesses are not simulated); await timers or other coroutines"
)


MOST_PASSES = 1_000_000
"""The maximum number of loop passes at one virtual second. After that, time advances anyway, so that code that never
waits for a timer cannot stop time.
"""


class _Waiting:
    """Replaces a loop's selector: advances time instead of waiting for sockets."""

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
    """An event loop in virtual time, without sockets or threads. `moved` is called with every new second."""

    _ready: deque[asyncio.Handle]

    def __init__(self, *, start: float = 0.0, moved: Callable[[float], None] | None = None) -> None:
        super().__init__()
        self._selector = _Waiting(self)
        self._now = start
        self._moved = moved
        self.timers: list[Timer] = []
        self._made = 0

    def time(self) -> float:
        """Return the loop's current time, in virtual seconds."""
        return self._now

    def __del__(self) -> None:
        """Close the loop, which has no sockets or threads to clean up."""
        if not self.is_closed() and not self.is_running():
            self.close()

    def advance(self, seconds: float) -> None:
        """Advance the loop's time to `seconds`."""
        self._now = seconds
        if self._moved is not None:
            self._moved(seconds)

    def call_at(  # type: ignore[override]  # typeshed's names of the arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback; callbacks due at the same time run in the order they were scheduled."""
        timer = asyncio.TimerHandle(checked_moment(when), callback, args, self, context)
        self._made += 1
        self.put((when, self._made, timer))
        return timer

    def call_first(self, callback: Callable[..., object]) -> None:
        """Schedule a callback to run now, before all others."""
        self._made += 1
        self.put((self.time(), -self._made, asyncio.TimerHandle(self.time(), callback, (), self)))

    def put(self, timer: Timer) -> None:
        """Schedule a timer; a timer returned by `take` may be scheduled again."""
        heapq.heappush(self.timers, timer)

    def take(self) -> Timer:
        """Remove and return the next timer."""
        return heapq.heappop(self.timers)

    def forget_cancelled(self) -> None:
        """Remove cancelled timers, up to the next one that is not cancelled."""
        while self.timers and self.timers[0][2].cancelled():
            heapq.heappop(self.timers)

    def next_timer(self) -> None:
        """Advance to the next timer that is not cancelled, and make its callback ready.

        Raises `AsyncToolStuck` if there is none, because then nothing can ever happen.
        """
        self.forget_cancelled()
        if not self.timers:
            raise AsyncToolStuck(STUCK)
        when, _, timer = self.take()
        if when > self.time():
            self.advance(when)
        self._ready.append(timer)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Return a future that never completes, because threads are not simulated. Awaiting it is an error."""
        return self.create_future()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is skipped when it is due."""

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: there are no file descriptors."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps, so it need not be woken."""


@contextmanager
def running_loop(loop: VirtualLoop | None) -> Iterator[None]:
    """Make `loop` the running event loop inside the `with` statement; with None, another loop can be run.

    Inside it, no task is current, not even one in a user's own event loop.
    """
    outer = asyncio._get_running_loop()
    task = None if outer is None else asyncio.current_task(outer)
    if outer is not None and task is not None:
        asyncio.tasks._leave_task(outer, task)
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if outer is not None and task is not None:
            asyncio.tasks._enter_task(outer, task)


def run_in(loop: VirtualLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` on `loop`, close the loop, and return the result; works even while another loop runs.

    Tasks that the coroutine started but did not await are cancelled, and closed if they do not end, so that nothing
    outlives the call.
    """
    with running_loop(None):
        try:
            return loop.run_until_complete(coroutine)
        finally:
            try:
                leftovers = asyncio.all_tasks(loop)
                if leftovers:
                    loop.run_until_complete(all_cancelled(leftovers))
            finally:
                loop.close()


async def all_cancelled(tasks: Set[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and close the ones that do not end within `GRACE` seconds."""
    await asyncio.gather(*(cancelled_in_time(task, GRACE) for task in tasks))
