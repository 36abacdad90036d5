"""The application under test on the installed STATEK: its jobs, stepped by STATEK's own worker in virtual time."""

from __future__ import annotations

import asyncio
import builtins
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import statek
from statek import runner
from statek.executors import utils
from statek.task import create_new_job

from statek_sim.backends.application import AppJob, AppOutcome
from statek_sim.backends.in_process.instrumentation import StoredNames, Watch
from statek_sim.backends.in_process.isolation import isolated
from statek_sim.backends.in_process.plain_dates import plain_dates
from statek_sim.backends.in_process.stored_jobs import KnownJobs, described
from statek_sim.backends.in_process.transport import Stopped, Transport
from statek_sim.backends.installed.stored_objects import label
from statek_sim.backends.installed.virtual_time import VirtualTime, let_loops_nest
from statek_sim.backends.installed.worker_loop import Interrupted, WorkerLoop, waiting_names
from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.errors import BadInput, RunawayJob
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.protocol import Provider
from statek_sim.runtime.execution.suspension import SeparateStack
from statek_sim.semantics import Profile
from statek_sim.trace import StoreRemark

_LEFT: Final[list[object]] = []
"""Runs that their tests left in the middle of an async tool, kept as they are."""


class ClockedTime(VirtualTime):
    """Virtual time that a clock follows, and with it the wall clock of the application."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def do_next(self) -> None:
        """Go to the next due thing and do it."""
        at = self.next_at
        if at is not None and at > self._clock.now():
            self._clock.advance_to(at)
        super().do_next()

    def spend(self, seconds: float) -> None:
        """Let time pass in which nothing else happens."""
        self.block(seconds)
        self._clock.advance_to(max(self.now, self._clock.now()))


class AgentLoops(WorkerLoop):
    """The worker loop with what STATEK's own does at the start of each pass: deliver pushes, start agents' jobs."""

    def __init__(self, *args: Any, max_concurrency: int, **options: Any) -> None:
        super().__init__(*args, max_concurrency=max_concurrency, **options)
        self._capacity = max_concurrency
        self._starts: dict[Any, None] = {}
        self._prefixes: dict[Any, None] = {}

    def serve(self, start: Callable[[int], None] | None, prefixes: Sequence[Any]) -> None:
        """From now on deliver what is queued under these prefixes, and let `start` create jobs."""
        self._prefixes.update(dict.fromkeys(prefixes))
        if start is not None:
            self._starts[start] = None

    def _begin_pass(self) -> bool:
        if self.died is None:
            try:
                self._serve()
            except Exception as error:  # noqa: BLE001  # STATEK's circuit breaker, and the application's functions
                self.die(f"the worker loop died of {type(error).__name__}: {error}")
        return super()._begin_pass()

    def _serve(self) -> None:
        prefixes = list(self._prefixes)
        if prefixes:
            utils.process_push_notifications(queue_prefixes=prefixes)
            utils.process_agent_events(queue_prefixes=prefixes)
        for start in self._starts:
            start(self._capacity - len(self._flying))


class InstalledApplication:
    """See `Application`. Jobs are STATEK's own."""

    backend = "installed"

    def __init__(
        self,
        provider: Provider,
        *,
        profile: Profile,
        clock: VirtualClock,
        seed: int,
        max_concurrency: int = 100,
    ) -> None:
        self.profile = profile.name
        self._clock = clock
        self._time = ClockedTime(clock)
        self._known = KnownJobs()
        self._transport = Transport(provider, self._time, self._current)
        self._watch = Watch(self._known.name_of)
        self._stored = StoredNames(lambda: self._time.now, self._known.name_of)
        self._events = asyncio.new_event_loop()
        let_loops_nest(self._events)
        self._time.rule(self._events)
        self._worker = AgentLoops(
            self._time,
            self._known.jobs,
            max_concurrency=max_concurrency,
            dormant=profile.waiting_job_is_dormant,
            pass_seconds=profile.warmup_wait_pass_seconds,
            order="fifo",
            seed=seed,
        )
        self._worker.before_step = self._step_begins
        self._worker.pause = self._pause
        self._until = FOREVER
        self._stack: SeparateStack[bool] | None = None
        self._builtins = builtins.print, builtins.exit

    def _step_begins(self, job: str, *_: object) -> None:
        self._transport.step_begins(job)

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Answer STATEK's requests, watch its tools, pass its sleeps in virtual time; undo that after."""
        sleep, asleep, loop, own = time.sleep, asyncio.sleep, utils.run_jobs_loop, runner.asyncio
        review = utils.unsuspend_jobs
        own_print, left = builtins.print, builtins.exit
        asyncio.sleep = self._time.sleep  # type: ignore[assignment]  # nothing sleeps for real
        time.sleep = self._tool_sleeps(sleep)  # type: ignore[assignment]  # numbers are all it is called with
        utils.run_jobs_loop = self._serve
        utils.unsuspend_jobs = _refuse_endless_loop
        runner.asyncio = types.SimpleNamespace(
            get_running_loop=asyncio.get_running_loop, run=self._events.run_until_complete
        )
        try:
            with self._transport.installed(), self._watch.installed(), self._stored.installed():
                yield
        finally:
            time.sleep, asyncio.sleep = sleep, asleep
            utils.run_jobs_loop, utils.unsuspend_jobs, runner.asyncio = loop, review, own
            builtins.print, builtins.exit = own_print, left

    def _tool_sleeps(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        def sleep_virtually(seconds: float) -> None:
            if statek.get_current_job() is None:
                sleep(seconds)
            else:
                self._time.spend(float(seconds))

        return sleep_virtually

    async def _serve(
        self,
        max_concurrency: int = 100,
        provider: str | None = None,
        *,
        queue_prefixes: Sequence[Any],
        start_jobs_func: Callable[[int], None] | None = None,
        auto_terminate: bool = False,
    ) -> None:
        """Stand in for `run_jobs_loop`, which never returns: this does once nothing is left to do."""
        self._worker.serve(start_jobs_func, queue_prefixes)
        await self._drive(FOREVER)

    async def _drive(self, until: float) -> bool:
        """Let the worker run; what ends it early comes out as what it is."""
        try:
            return await self._worker.run(until)
        except Stopped as stop:
            raise stop.reason from None
        except Interrupted as end:
            raise RunawayJob(end.message) from None

    def _pause(self) -> float | None:
        """Return to the test while async tools are waited for: loops inside of one another cannot do that."""
        if self._stack is None or not self._stack.is_current() or self._events._num_runs_pending <= 1:  # type: ignore[attr-defined]
            return None
        own_print, left, loop = builtins.print, builtins.exit, asyncio._get_running_loop()
        builtins.print, builtins.exit = self._builtins
        asyncio._set_running_loop(None)
        self._stack.pause()
        asyncio._set_running_loop(loop)
        builtins.print, builtins.exit = own_print, left
        return self._until

    def close(self) -> None:
        """Give up what is still in flight."""
        if self._stack is not None:
            # Unwinding it would let the tools clean up, and the jobs go on.
            _LEFT.append(self._stack)
            return
        for task in asyncio.all_tasks(self._events):
            task.cancel()
        self._events.run_until_complete(asyncio.sleep(0))
        self._events.close()

    # -- jobs ------------------------------------------------------------------------------------------------------

    def create_job(
        self,
        agent: Any,
        *,
        message: object = None,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Create a job as the application would."""
        if name is not None and name in self._known.jobs():
            raise BadInput(f"job {name!r} exists already; names of jobs are unique within a test")
        job = create_new_job(agent, caller_frame=_callers_frame(), **options)
        self._known.meet(job, name)
        if message is not None:
            job.push_user_message(message)
        return job

    def jobs(self) -> Mapping[str, Any]:
        """Return all jobs by name."""
        return dict(self._known.jobs())

    def remarks(self) -> Sequence[StoreRemark]:
        """Return what the store has done to variables so far."""
        return tuple(self._stored.remarks)

    def describe(self, job: Any) -> AppJob:
        """Return what there is to say about a job."""
        name = self._known.name_of(job)
        return described(
            name,
            job,
            others=self._known.jobs(),
            llm_calls=self._transport.calls.get(name, 0),
            history=self._transport.last.get(name, ()),
            tools=self._watch.tools.get(name, []),
            handlers=self._watch.handlers,
        )

    def _current(self) -> tuple[str, str, str | None]:
        job = statek.get_current_job()
        name = self._known.name_of(job)
        style = job.job_def.chat_style
        return name, job.agent.role, None if style is None else label(style)

    # -- time ------------------------------------------------------------------------------------------------------

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Refuse: dbzero keeps what STATEK does."""
        raise BadInput(
            f"keep_in({address!r}): the installed package keeps everything in dbzero; run this test with "
            "--statek-backend=reference"
        )

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._clock.now()

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do `action` at virtual second `when`."""
        self._time.at(when, action)

    def run(self, until: float) -> AppOutcome:
        """Run until nothing is left to do, or virtual second `until`."""
        self._until = until
        if self._stack is None:
            self._stack = SeparateStack(lambda: self._events.run_until_complete(self._drive(until)))
        try:
            settled = bool(self._stack.go_on())
        finally:
            if self._stack.ended:
                self._stack = None
        return AppOutcome(
            at=self.now(),
            settled=settled,
            waiting=tuple(waiting_names(self._known.jobs())),
            worker=self._worker.died,
        )


def _callers_frame() -> types.FrameType | None:
    """Return the frame of the test that asks for a job: STATEK copies variables that warmup code reads from there."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("statek_sim."):
        frame = frame.f_back
    return frame


def _refuse_endless_loop() -> None:
    """Stand where STATEK's own loop begins: who imported it by name would never get out of it."""
    raise BadInput(
        "the application runs STATEK's run_jobs_loop, which never ends; in a test call statek_app.run(), start_statek, "
        "run_agentic_loop or run_agentic_fleet, which end there when nothing is left to do"
    )


@contextmanager
def opened(
    provider: Provider,
    *,
    settings: StatekSettings,
    limits: LLM_Harness,
    profile: Profile,
    clock: VirtualClock,
    seed: int,
) -> Iterator[InstalledApplication]:
    """Open the installed STATEK for one test; what it changed is put back when the block ends."""
    with ExitStack() as stack:
        stack.enter_context(isolated(settings, limits))
        stack.enter_context(plain_dates())
        application = InstalledApplication(provider, profile=profile, clock=clock, seed=seed)
        stack.callback(application.close)
        stack.enter_context(application.in_charge())
        yield application


__all__ = ["ClockedTime", "InstalledApplication", "opened"]
