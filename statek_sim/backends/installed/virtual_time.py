"""Virtual seconds: what would be slept is put on an agenda, and agents and tools read them off the wall clock.

Events come before the end of sleeps. Stand-ins for `date` and `datetime` are put where agent code and the world's tools
find them. What they return are real dates, because STATEK's store takes nothing else.
"""

from __future__ import annotations

import asyncio
import datetime
import heapq
import importlib
import importlib.util
import types
from collections.abc import Callable
from typing import Any, Final, cast

from statek import python_sandbox

from statek_sim.clock import EPOCH, VirtualClock, checked_moment
from statek_sim.world import tools

EVENT: Final = 0
STEP: Final = 1

_sleep = asyncio.sleep


class VirtualTime:
    """An agenda, ordered by `(at, priority, seq)`, that moves `clock`."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._agenda: list[tuple[float, int, int, Callable[[], Any], asyncio.TimerHandle | None]] = []
        self._seq = 0

    @property
    def now(self) -> float:
        """The virtual second."""
        return self._clock.now()

    def go_to(self, when: float) -> None:
        """Let it be virtual second `when`, unless that has passed."""
        if when > self.now:
            self._clock.advance_to(when)

    def at(
        self,
        when: float,
        action: Callable[[], Any],
        *,
        priority: int = EVENT,
        timer: asyncio.TimerHandle | None = None,
    ) -> None:
        """Do `action` at virtual second `when`, unless `timer` is cancelled by then."""
        self._seq += 1
        heapq.heappush(self._agenda, (when, priority, self._seq, action, timer))

    @property
    def next_at(self) -> float | None:
        """When the next thing is due, None when nothing is."""
        while self._agenda and (timer := self._agenda[0][-1]) is not None and timer.cancelled():
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def do_next(self) -> None:
        """Go to the next due thing and do it."""
        when, _, _, action, _ = heapq.heappop(self._agenda)
        self.go_to(when)
        action()

    def block(self, seconds: float) -> None:
        """Let time pass in which the process stands still: only events from outside happen."""
        end = self.now + seconds
        while outside := [due for due in self._agenda if due[1] == EVENT and due[0] <= end]:
            self._agenda.remove(first := min(outside, key=lambda due: due[:3]))
            heapq.heapify(self._agenda)
            self.go_to(first[0])
            first[3]()
        self.go_to(end)

    def forget_steps(self) -> None:
        """Take off the agenda what a worker process would have done that is dead."""
        self._agenda = [due for due in self._agenda if due[1] != STEP]
        heapq.heapify(self._agenda)

    def rule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the timers of an event loop (timeouts, delayed calls) go by this time."""

        def call_at(
            when: float, callback: Callable[..., object], *args: Any, context: Any = None
        ) -> asyncio.TimerHandle:
            timer = asyncio.TimerHandle(checked_moment(when), callback, args, loop, context)
            self.at(when, lambda: None if timer.cancelled() else timer._run(), priority=STEP, timer=timer)
            return timer

        patched: Any = loop
        patched.time = lambda: self.now
        patched.call_at = call_at
        patched._timer_handle_cancelled = lambda _: None

    async def sleep(self, seconds: float, result: Any = None) -> Any:
        """Stand in for `asyncio.sleep`, on a loop that this rules."""
        return await _sleep(seconds, result)


_TURNS: Final = 12
"""Turns of the loop in a row without anything else to do, after which every task waits. Some turns only lead back out
of loops that async tools have begun inside of one another."""

_MOST_TURNS: Final = 5_000


def let_loops_nest(loop: asyncio.AbstractEventLoop) -> None:
    """Patch a loop for loops in loops now, and not in the middle of the first call of an async tool, as STATEK does.

    There asyncio's own loop is in the middle of a round, and misses what the nested run took from it: an IndexError
    that ends the process. One job of a real worker has no such round, ten at once have one. The round in which our own
    driver waits would be one more, and nothing of STATEK's.
    """
    name = next(name for name in ("nest_asyncio2", "nest_asyncio") if importlib.util.find_spec(name))
    importlib.import_module(name).apply(loop)


async def allow_nested_runs() -> None:
    """Let the running loop nest from its next turn on."""
    let_loops_nest(asyncio.get_running_loop())
    await _sleep(0)


async def let_others_run() -> None:
    """Let every task go on until it waits for something.

    An async tool runs the loop inside of its job's task, and we are called in there: so it is asked what is ready, a
    few times over, for between two calls of such tools nothing is.
    """
    ready = cast("Any", asyncio.get_running_loop())._ready
    quiet = turns = 0
    while quiet < _TURNS and turns < _MOST_TURNS:
        await _sleep(0)
        turns += 1
        quiet = 0 if ready else quiet + 1


def install_wall_clock(now: Callable[[], float]) -> None:
    """Have clocks show the moment `now()` virtual seconds after the start of the run."""

    def wall(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        moment = EPOCH + datetime.timedelta(seconds=now())
        return moment.astimezone(zone) if zone is not None else moment.replace(tzinfo=None)

    dates, times = _stand_in(datetime.date), _stand_in(datetime.datetime)
    times.now = times.today = staticmethod(wall)
    times.utcnow = staticmethod(wall)
    dates.today = staticmethod(lambda: wall().date())
    exports = python_sandbox._SAFE_IMPORTS["datetime"]._exports
    # Unrestricted code imports the real classes, which STATEK does not keep either: it looks for them here.
    exports.update(date=dates, datetime=times, _plain=exports["date"], _plain_too=exports["datetime"])
    module = types.ModuleType("datetime")
    vars(module).update({**vars(datetime), "date": dates, "datetime": times})
    tools.datetime = module  # type: ignore[attr-defined]  # its own name for it


def _stand_in(kind: type) -> Any:
    """Return a class that makes objects of `kind` and takes them for its own."""

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, kind)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return kind(*args, **kwargs)

    return Kind(kind.__name__, (kind,), {"__module__": kind.__module__})
