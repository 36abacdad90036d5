"""The event loop for async tools in virtual time.

The loop never runs on its own: the scheduler runs its ready callbacks and puts its timers on the agenda. If a
test calls an async tool outside a run, `run_virtual` runs it to completion immediately: `asyncio.sleep(60)`
takes no real time.
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
"""A started coroutine's task."""

Timer: TypeAlias = asyncio.TimerHandle
"""An event loop's scheduled callback."""

MOST_CALLBACKS: Final = 100_000
"""Maximum number of callbacks in one `do_ready` call, during which no virtual time passes."""


STUCK: Final = (
    "an async tool awaits something that never happens in virtual time "
    "(sockets, threads and subprocesses are not simulated); await timers or other coroutines"
)
"""The error message for an async tool that can never continue."""


class ToolLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and threads, whose time is `now()`.

    `plan` is called with each new timer, and must arrange for `fire(timer)` to be called at `timer.when()`.
    """

    _ready: deque[asyncio.Handle]

    def __init__(self, now: Callable[[], float], plan: Callable[[asyncio.TimerHandle], None]) -> None:
        super().__init__()
        self._now = now
        self._plan = plan
        self._unfinished: set[asyncio.Task[Any]] = set()
        self.dead = False
        """Whether the worker process died. If so, the loop does not even run ready callbacks."""

    def __del__(self) -> None:
        """Do nothing, because there are no sockets to close."""

    def time(self) -> float:
        """Return the virtual time in seconds since the start of the run."""
        return self._now()

    def is_running(self) -> bool:
        """Return True, because tools only run while the scheduler runs the loop."""
        return True

    def call_at(  # type: ignore[override]  # typeshed's names of the arguments
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback for virtual second `when`."""
        timer = asyncio.TimerHandle(checked_moment(when), callback, args, self, context)
        self._plan(timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing, because the scheduler skips cancelled timers."""

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Return a new task that runs a tool's coroutine in a copy of the current context."""
        return self.create_task(coroutine)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Return a new task, which the loop keeps a reference to until the task has finished."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        # The process's death is not the tool's error.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Return a future that never completes, because threads are not simulated. Awaiting it is an error."""
        return self.create_future()

    def fire(self, timer: asyncio.TimerHandle) -> None:
        """Run a timer's callback and all other ready callbacks."""
        self._ready.append(timer)
        self.do_ready()

    def do_ready(self) -> None:
        """Run ready callbacks, including newly added ones, until none are left. Calls may be nested.

        Raises `AsyncToolStuck` after too many callbacks.
        """
        if not self._ready:
            return
        done = 0
        with running_loop(self):
            while self._ready and not self.dead:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    done += 1
                    if done > MOST_CALLBACKS:
                        raise AsyncToolStuck(
                            f"an async tool has yielded to the event loop {MOST_CALLBACKS:,} times without letting "
                            "time pass; make it sleep or wait for something"
                        )
                    handle._run()

    @property
    def has_ready(self) -> bool:
        """Whether any callbacks are ready."""
        return bool(self._ready)

    def make_running(self) -> None:
        """Make this the running asyncio event loop."""
        asyncio._set_running_loop(self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception that was never retrieved, unless the worker process died."""
        if not self.dead:
            super().call_exception_handler(context)

    def cancel_tasks(self) -> None:
        """Cancel all unfinished tasks, and run their cleanup."""
        for task in [*self._unfinished]:
            task.cancel()
        self.do_ready()

    def close_tasks(self) -> None:
        """Close the coroutines of all unfinished tasks: `finally` blocks run, up to their first `await`."""
        for task in [*self._unfinished]:
            with suppress(BaseException):
                task.get_coro().close()
        self._unfinished.clear()
        self._ready.clear()

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing, because there are no file descriptors."""

    def _write_to_self(self) -> None:
        """Do nothing, because the loop never sleeps."""


@contextmanager
def running_loop(loop: ToolLoop | None) -> Iterator[None]:
    """Make `loop` the running event loop inside the `with` statement.

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


def in_event_loop() -> bool:
    """Return whether an asyncio event loop is running."""
    return asyncio._get_running_loop() is not None


T = TypeVar("T")


class _Timers:
    """A clock that jumps from timer to timer; timers due at the same time run in scheduling order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Timer]] = []
        self._seq = 0

    def plan(self, timer: Timer) -> None:
        """Add a timer."""
        self._seq += 1
        heapq.heappush(self._planned, (timer.when(), self._seq, timer))

    def next(self) -> Timer:
        """Advance the clock to the next timer and return it; raises `AsyncToolStuck` if there is none."""
        while self._planned:
            when, _, timer = heapq.heappop(self._planned)
            if not timer.cancelled():
                self.now = max(self.now, when)
                return timer
        raise AsyncToolStuck(STUCK)


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run `coroutine` to completion in virtual time and return its result; other unfinished tasks are cancelled.

    This also works inside a running event loop, such as an async test's, which is restored afterwards.
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
        loop.cancel_tasks()
