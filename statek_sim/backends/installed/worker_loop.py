"""STATEK's worker loop in virtual time: STATEK's own functions run each step and check the waiting jobs.

STATEK's loop sleeps in real time, and takes jobs in store order, which is not guaranteed. Here, `job_worker`
runs each step, and `unsuspend_jobs` checks the waiting jobs on each pass. A round consists of one step for
each runnable job, first come, first served (behaviour 10), in the same order as on the reference runtime.

Sleeps are agenda entries; events come before sleeps that end in the same second. Agents and tools that ask
for the wall-clock time get virtual time: `date` and `datetime` are patched in the namespaces that agent code
and the built-in tools use. The replacements create real dates, because STATEK's store accepts nothing else.
"""

from __future__ import annotations

import asyncio
import datetime
import importlib
import importlib.util
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import dbzero
from statek import python_sandbox
from statek.executors import utils
from statek.executors.job import Job, JobStatus
from statek.executors.utils import job_worker, unsuspend_jobs

from statek_sim.clock import EPOCH, VirtualClock, checked_moment
from statek_sim.harness.limits import MOST_ESCAPES, MOST_STEPS
from statek_sim.runtime.execution.agenda import EVENT, STEP, Agenda, Due
from statek_sim.runtime.execution.job_queue import Order, Rounds
from statek_sim.world import tools

_sleep = asyncio.sleep


class VirtualTime:
    """The agenda of virtual time, which moves `clock`."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._agenda = Agenda()

    @property
    def now(self) -> float:
        """The current virtual second."""
        return self._clock.now()

    def go_to(self, when: float) -> None:
        """Move to virtual second `when`, unless it has passed."""
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
        """Call `action` at virtual second `when`, unless `timer` has been cancelled by then."""
        self._agenda.add(when, priority, action, timer)

    @property
    def next_at(self) -> float | None:
        """The virtual second of the next action, or None if there is none."""
        return self._agenda.next_at

    def do_next(self) -> None:
        """Move to the next action and execute it."""
        self._do(self._agenda.take())

    def _do(self, due: Due) -> None:
        self.go_to(due.at)
        due.action()

    def block(self, seconds: float) -> None:
        """Advance time while the process is blocked: external events happen, but no job runs a step."""
        end = self.now + seconds
        while (due := self._agenda.next_event(end)) is not None:
            self._agenda.strike(due)
            self._do(due)
        self.go_to(end)

    def forget_steps(self) -> None:
        """Remove a dead worker process's actions from the agenda."""
        self._agenda.forget_steps()

    def rule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make an event loop use this time for timeouts and delayed calls."""

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
        """Replaces `asyncio.sleep` on event loops that use this time."""
        return await _sleep(seconds, result)


_TURNS: Final = 12
"""Consecutive event loop turns without a ready task after which every task counts as waiting.

Some turns only leave nested loops started by async tools.
"""

_MOST_TURNS: Final = 5_000


def let_loops_nest(loop: asyncio.AbstractEventLoop) -> None:
    """Patch an event loop for nested runs now; STATEK does so during the first async tool call.

    If asyncio's loop is in the middle of a round at that time, it misses the tasks that the nested run took
    from the round, and an IndexError ends the process. In STATEK, this happens with ten concurrent jobs, but
    not with one. Here, it would happen even with a single job, because our own driver waits in such a round.
    """
    name = next(name for name in ("nest_asyncio2", "nest_asyncio") if importlib.util.find_spec(name))
    importlib.import_module(name).apply(loop)


async def allow_nested_runs() -> None:
    """Patch the running event loop for nested runs; this takes effect from its next turn on."""
    let_loops_nest(asyncio.get_running_loop())
    await _sleep(0)


async def let_others_run() -> None:
    """Run every task until it waits.

    The caller may be inside an async tool, which runs the loop within the task of the tool's job. Between two
    calls to such tools, there is briefly no ready task, so readiness is checked for several turns.
    """
    ready = cast("Any", asyncio.get_running_loop())._ready
    quiet = turns = 0
    while quiet < _TURNS and turns < _MOST_TURNS:
        await _sleep(0)
        turns += 1
        quiet = 0 if ready else quiet + 1


def install_wall_clock(now: Callable[[], float]) -> None:
    """Make `date` and `datetime` return the time `now()` virtual seconds after the run started."""

    def wall(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        moment = EPOCH + datetime.timedelta(seconds=now())
        return moment.astimezone(zone) if zone is not None else moment.replace(tzinfo=None)

    dates, times = _stand_in(datetime.date), _stand_in(datetime.datetime)
    times.now = times.today = staticmethod(wall)
    times.utcnow = staticmethod(wall)
    dates.today = staticmethod(lambda: wall().date())
    exports = python_sandbox._SAFE_IMPORTS["datetime"]._exports
    # Unrestricted code imports the real classes, which STATEK does not store either: it looks for them here.
    exports.update(date=dates, datetime=times, _plain=exports["date"], _plain_too=exports["datetime"])
    module = types.ModuleType("datetime")
    vars(module).update({**vars(datetime), "date": dates, "datetime": times})
    tools.datetime = module  # type: ignore[attr-defined]  # its own name for it


def _stand_in(kind: type) -> Any:
    """Return a class that creates `kind` objects, and of which all `kind` objects count as instances."""

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, kind)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return kind(*args, **kwargs)

    return Kind(kind.__name__, (kind,), {"__module__": kind.__module__})


_RUNNABLE: Final = (JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED)


class Interrupted(BaseException):
    """Raised if the run cannot continue, because the script does not match or a job never ends.

    `kind` names the error.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class _Named:
    """A job represented by its name."""

    id: str


class WorkerLoop:
    """Runs the jobs that `known()` returns, in creation order, until no work is left.

    `dormant` and `pass_seconds` are the profile's rules for jobs that wait in warmup.
    """

    def __init__(
        self,
        time: VirtualTime,
        known: Callable[[], dict[str, Any]],
        *,
        max_concurrency: int,
        dormant: bool,
        pass_seconds: float,
        order: Order,
        seed: int,
    ) -> None:
        self._time = time
        self._known = known
        self.most = max_concurrency
        """The maximum number of concurrent steps."""
        self.provider: str | None = None
        """The default provider, in place of the settings'."""
        self._dormant = dormant
        self._pass_seconds = pass_seconds
        self._rounds: Rounds[_Named] = Rounds(order, seed, lambda job: self._can_run(known()[job.id]))
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._waiting: list[str] = []
        self._busy: set[str] = set()
        self._escapes: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self.before_step: Callable[[str], None] = lambda _name: None
        self.on_death: Callable[[str], None] = lambda _reason: None
        self.on_pass: list[Callable[[int], None]] = []
        """Called at the start of each pass with the number of free slots, so that agentic loops can create jobs."""
        self.died: str | None = None
        self.error: Exception | None = None
        """The error that ended the loop."""

    async def run(self, until: float) -> bool:
        """Run until nothing is runnable or scheduled, or until `until`; return whether no work was left."""
        while True:
            if await self._step() or self._begin_pass():
                continue
            when = self._time.next_at
            if when is None:
                return True
            if when > until:
                return False
            self._time.do_next()
            await self._settle()

    # -- runnable jobs ---------------------------------------------------------------------------------------------

    def offer(self, *, last: str | None = None) -> None:
        """Queue every job that became ready; the job whose step has just ended comes last."""
        jobs = self._known()
        waited = [name for name in self._waiting if name in jobs]
        for job in map(_Named, jobs):
            if not self._rounds.knows(job):
                self._rounds.enter(job)
        if self.died is None:
            for name in sorted(
                (*waited, *(n for n in jobs if n not in waited)), key=lambda name: name == last
            ):
                self._rounds.offer(_Named(name))
            self._rounds.take_in({*self._flying, *self._busy}, None)
        self._waiting = [
            *(name for name in self._waiting if self._waits(jobs[name])),
            *(name for name in jobs if name not in self._waiting and self._waits(jobs[name])),
        ]

    def _can_run(self, job: Any) -> bool:
        return job.status in _RUNNABLE and not (self._dormant and self._waits(job))

    @staticmethod
    def _waits(job: Any) -> bool:
        return job.awaited_result is not None and job.status in (JobStatus.SUSPENDED, JobStatus.WARMING_UP)

    # -- running ---------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether steps are in progress."""
        return bool(self._flying)

    async def _step(self) -> bool:
        """Start the next step in this round; return False if there is none."""
        if self.died is not None or len(self._flying) >= self.most:
            return False
        entry = self._rounds.take()
        if entry is None:
            return False
        name, job = entry.id, self._known()[entry.id]
        if not self._can_run(job):
            return True
        self.steps[name] = self.steps.get(name, 0) + 1
        if self.steps[name] > MOST_STEPS:
            raise Interrupted("RunawayJob", f"job {name!r} reached step {self.steps[name]}")
        self.before_step(name)
        self._flying[name] = asyncio.ensure_future(job_worker(asyncio.Semaphore(1), job, self.provider))
        await self._settle()
        return True

    def _begin_pass(self) -> bool:
        """Let STATEK check its waiting jobs, then open the next round; return False if no job is runnable."""
        if self.died is not None:
            return False
        try:
            jobs = self._known()
            with found_in_order({dbzero.uuid(jobs[name]): at for at, name in enumerate(self._waiting)}):
                unsuspend_jobs()
            for start_jobs in self.on_pass:
                start_jobs(self.most - len(self._flying))
        except Exception as error:  # noqa: BLE001  # a condition or a queue's size: the user's code
            self.error = error
            self.die(f"the worker loop died of {type(error).__name__}: {error}")
            return False
        # STATEK's loop queries the store for runnable jobs here. The store updates its status index when a
        # changed status is queried, so without this query it may not find a job that waits for the second
        # time.
        any(True for _ in dbzero.find(Job, [JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED]))
        self.offer()
        return len(self._flying) < self.most and self._rounds.open()

    async def _settle(self) -> None:
        """Run the tasks until they wait for time to pass, and collect the finished tasks."""
        await let_others_run()
        for name in [name for name, task in self._flying.items() if task.done()]:
            task = self._flying.pop(name)
            self._look_at(name, task.exception())
            job = self._known()[name]
            if not self._dormant and job.status == JobStatus.WARMING_UP and self._waits(job):
                self._look_again(name)
            self.offer(last=name)
        self.offer()

    def _look_at(self, name: str, escaped: BaseException | None) -> None:
        if escaped is None:
            self._escapes[name] = 0
            return
        if isinstance(escaped, Interrupted):
            raise escaped
        self._escapes[name] = self._escapes.get(name, 0) + 1
        if self._escapes[name] > MOST_ESCAPES:
            reason = f"{type(escaped).__name__}: {escaped}"
            raise Interrupted("Livelock", f"job {name!r} repeats the same step forever: {reason}")

    def _look_again(self, name: str) -> None:
        self._busy.add(name)

        def again() -> None:
            self._busy.discard(name)
            self.offer()

        self._time.at(self._time.now + self._pass_seconds, again, priority=STEP)

    # -- the worker process ----------------------------------------------------------------------------------------

    def die(self, reason: str) -> None:
        """Stop working; steps in progress are lost."""
        self.died = reason
        self.on_death(reason)
        for task in self._flying.values():
            task.cancel()
        self._flying.clear()
        self._time.forget_steps()
        self._rounds.clear()

    def memory(self) -> dict[str, Any]:
        """Return the state for `remember` in the next process."""
        return {
            "steps": dict(self.steps),
            "waiting": list(self._waiting),
            "died": self.died,
            "rounds": self._rounds.saved(),
        }

    def remember(self, memory: Any) -> None:
        """Continue from the state returned by `memory` in the previous process."""
        self.steps.update(memory["steps"])
        self._waiting = memory["waiting"]
        self.died = memory["died"]
        self._rounds.resume(memory["rounds"])

    def restart(self) -> None:
        """Resume work; every runnable job repeats its interrupted step."""
        self.died = self.error = None
        self.offer()


def waiting_names(jobs: dict[str, Any]) -> Iterable[str]:
    """Return the names of jobs that are waiting for a future."""
    return (name for name, job in jobs.items() if WorkerLoop._waits(job))


@contextmanager
def found_in_order(places: Mapping[str, int]) -> Iterator[None]:
    """Make STATEK find stored objects in the order of `places`, which maps their ids to positions.

    Other objects come last. The store's own order is not guaranteed.
    """

    class Store:
        """The store, with queries that return results in the order of `places`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(dbzero, name)

        def find(self, *query: Any) -> list[Any]:
            """Return the store's results in that order."""
            return sorted(
                dbzero.find(*query), key=lambda stored: places.get(dbzero.uuid(stored), len(places))
            )

    utils.db0 = Store()
    try:
        yield
    finally:
        utils.db0 = dbzero
