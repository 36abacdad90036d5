"""The event loop of one worker process's async tools. Its time is the scheduler's.

It never runs by itself: the scheduler runs its ready callbacks, and merges its timers with everything else that is due.
A tool called by a test, outside of any run, is run to its end at once: `asyncio.sleep(60)` takes no real time there.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

from statek_sim.clock import checked_moment
from statek_sim.errors import AsyncToolStuck

Running: TypeAlias = asyncio.Task[Any]
"""A started coroutine."""

Timer: TypeAlias = asyncio.TimerHandle
"""A timer of a loop."""

MOST_CALLBACKS: Final = 100_000
"""Maximum callbacks in a row while no time passes."""


STUCK: Final = (
    "an async tool awaits something that virtual time cannot bring "
    "(sockets, threads and subprocesses are not simulated); await timers or other coroutines"
)
"""The error message if nothing can ever continue."""


class ToolLoop(asyncio.BaseEventLoop):
    """A loop without sockets and threads. `plan(timer)` must arrange a call of `fire(timer)` at `timer.when()`."""

    _ready: deque[asyncio.Handle]

    def __init__(self, now: Callable[[], float], plan: Callable[[asyncio.TimerHandle], None]) -> None:
        super().__init__()
        self._now = now
        self._plan = plan
        self._unfinished: set[asyncio.Task[Any]] = set()
        self.dead = False
        """Whether its process has died: nothing continues, not even ready callbacks."""

    def __del__(self) -> None:
        """Nothing to close: there are no sockets."""

    def time(self) -> float:
        """Return virtual seconds since the start of the run."""
        return self._now()

    def is_running(self) -> bool:
        """Return True, which tools expect, although the scheduler runs the loop."""
        return True

    def call_at(  # type: ignore[override]  # typeshed's names of the arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Plan a callback for virtual second `when`."""
        timer = asyncio.TimerHandle(checked_moment(when), callback, args, self, context)
        self._plan(timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: the scheduler skips cancelled timers."""

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Create a task for a tool's coroutine, in a copy of the current context."""
        return self.create_task(coroutine)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Create a task, which is kept until it has ended, even if others drop it."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        # The death of the process is not an error of the tool.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Return a future that never completes: threads are not simulated, and waiting for one is detected."""
        return self.create_future()

    def fire(self, timer: asyncio.TimerHandle) -> None:
        """Make a timer's callback ready, and run everything ready."""
        self._ready.append(timer)
        self.do_ready()

    def do_ready(self) -> None:
        """Run ready callbacks, including new ones, until every task waits. Calls may be nested."""
        if not self._ready:
            return
        done = 0
        with in_charge(self):
            while self._ready and not self.dead:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    done += 1
                    if done > MOST_CALLBACKS:
                        raise AsyncToolStuck(
                            f"an async tool has given way to the event loop {MOST_CALLBACKS:,} times without letting "
                            "time pass; let it sleep, or wait for something"
                        )
                    handle._run()

    @property
    def has_ready(self) -> bool:
        """Whether there are ready callbacks."""
        return bool(self._ready)

    def take_charge(self) -> None:
        """Become the running loop."""
        asyncio._set_running_loop(self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception that was never retrieved; a dead process reports nothing."""
        if not self.dead:
            super().call_exception_handler(context)

    def give_up(self) -> None:
        """Cancel unfinished tasks."""
        for task in [*self._unfinished]:
            task.cancel()
        self.do_ready()

    def close_tasks(self) -> None:
        """End every task where it is: its `finally` runs, but not anything awaited there."""
        for task in [*self._unfinished]:
            with suppress(BaseException):
                task.get_coro().close()
        self._unfinished.clear()
        self._ready.clear()

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: there are no file descriptors."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


@contextmanager
def in_charge(loop: ToolLoop | None) -> Iterator[None]:
    """Make `loop` the running one; a running task of it, or of a user's own loop, is suspended meanwhile."""
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


T = TypeVar("T")


class _Timers:
    """The clock of one call, which jumps from timer to timer. Timers at equal times run in the order of scheduling."""

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Timer]] = []
        self._seq = 0

    def plan(self, timer: Timer) -> None:
        """Add a timer."""
        self._seq += 1
        heapq.heappush(self._planned, (timer.when(), self._seq, timer))

    def next(self) -> Timer:
        """Advance to the next timer; without one nothing can ever happen."""
        while self._planned:
            when, _, timer = heapq.heappop(self._planned)
            if not timer.cancelled():
                self.now = max(self.now, when)
                return timer
        raise AsyncToolStuck(STUCK)


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to its end and return its result; tasks that it did not await are cancelled.

    Works inside a running event loop too (a user's async test), which is restored.
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
