"""The event loop for async tools in virtual time.

The loop never runs on its own: the scheduler runs its ready callbacks and puts its timers on the agenda. If a
test calls an async tool outside a run, a `VirtualLoop` runs it to completion immediately: `asyncio.sleep(60)`
takes no real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

from statek_sim.errors import AsyncToolStuck
from statek_sim.virtual_loop import Timer as Scheduled
from statek_sim.virtual_loop import VirtualLoop, running_loop

Running: TypeAlias = asyncio.Task[Any]
"""A started coroutine's task."""

Timer: TypeAlias = asyncio.TimerHandle
"""An event loop's scheduled callback."""

MOST_CALLBACKS: Final = 100_000
"""Maximum number of callbacks in one `do_ready` call, during which no virtual time passes."""


class ToolLoop(VirtualLoop):
    """A virtual loop whose time is `now()`.

    `plan` is called with each new timer, and must arrange for `fire(timer)` to be called at `timer.when()`.
    """

    def __init__(self, now: Callable[[], float], plan: Callable[[asyncio.TimerHandle], None]) -> None:
        super().__init__()
        self._clock = now
        self._plan = plan
        self._unfinished: set[asyncio.Task[Any]] = set()
        self.dead = False
        """Whether the worker process died. If so, the loop does not even run ready callbacks."""

    def time(self) -> float:
        """Return the virtual time in seconds since the start of the run."""
        return self._clock()

    def is_running(self) -> bool:
        """Return True, because tools only run while the scheduler runs the loop."""
        return True

    def put(self, timer: Scheduled) -> None:
        """Pass a new timer to the scheduler, which skips cancelled timers."""
        self._plan(timer[2])

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

    def close_tasks(self) -> None:
        """Close the coroutines of all unfinished tasks: `finally` blocks run, up to their first `await`."""
        for task in [*self._unfinished]:
            with suppress(BaseException):
                task.get_coro().close()
        self._unfinished.clear()
        self._ready.clear()


def in_event_loop() -> bool:
    """Return whether an asyncio event loop is running."""
    return asyncio._get_running_loop() is not None
