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

from statek_sim.backends.application import AppJob, AppOutcome, app_job
from statek_sim.backends.installed.event_recorder import StoredNames
from statek_sim.backends.installed.isolation import isolated, virtual_timestamps
from statek_sim.backends.installed.messages import Message, answer_of
from statek_sim.backends.installed.peer import job_record
from statek_sim.backends.installed.runtime import InstalledRuntime
from statek_sim.backends.installed.stored_jobs import parent_of
from statek_sim.backends.installed.worker_loop import Interrupted, let_loops_nest, waiting_names
from statek_sim.backends.record import FUTURE
from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.errors import BadInput, RunawayJob
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.protocol import Provider
from statek_sim.runtime.execution.suspension import SeparateStack
from statek_sim.semantics import Profile
from statek_sim.trace import StoreRemark
from statek_sim.wall_clock import plain_dates

_LEFT: Final[list[object]] = []
"""Runs that their tests left in the middle of an async tool, kept as they are."""


class Stopped(Interrupted):
    """The run cannot go on because of `reason`, which STATEK must not take for a failure of the job."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(type(reason).__name__, str(reason))
        self.reason = reason


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
        self._provider = provider
        self._runtime = InstalledRuntime(
            self._ask,
            clock,
            max_concurrency=max_concurrency,
            dormant=profile.waiting_job_is_dormant,
            pass_seconds=profile.warmup_wait_pass_seconds,
            order="fifo",
            seed=seed,
        )
        self._stored = StoredNames(self.now, self._runtime.jobs.name_of)
        self._events = asyncio.new_event_loop()
        let_loops_nest(self._events)
        self._runtime.time.rule(self._events)
        self._runtime.loop.pause = self._pause
        self._runtime.loop.on_pass.append(self._deliver_queued)
        self._queues: dict[Any, None] = {}
        self._until = FOREVER
        self._stack: SeparateStack[bool] | None = None
        self._builtins = builtins.print, builtins.exit

    def _ask(self, message: Message) -> Message:
        try:
            return answer_of(self._provider, message)
        except Exception as failure:
            raise Stopped(failure) from failure

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Take over STATEK, its loop and tools' sleeps inside the block; undo that after."""
        sleep, printed, left = time.sleep, builtins.print, builtins.exit
        with self._runtime.installed():
            self._stored.install()
            time.sleep = self._tool_sleeps(sleep)  # type: ignore[assignment]  # numbers are all it is called with
            utils.run_jobs_loop = self._serve
            utils.unsuspend_jobs = _refuse_endless_loop
            runner.asyncio = types.SimpleNamespace(
                get_running_loop=asyncio.get_running_loop, run=self._events.run_until_complete
            )
            try:
                yield
            finally:
                time.sleep, builtins.print, builtins.exit = sleep, printed, left

    def _tool_sleeps(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        def sleep_virtually(seconds: float) -> None:
            if statek.get_current_job() is None:
                sleep(seconds)
            else:
                self._runtime.time.block(float(seconds))

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
        self._queues.update(dict.fromkeys(queue_prefixes))
        on_pass = self._runtime.loop.on_pass
        if start_jobs_func is not None and start_jobs_func not in on_pass:
            on_pass.append(start_jobs_func)
        await self._drive(FOREVER)

    def _deliver_queued(self, _capacity: int) -> None:
        if self._queues:
            utils.process_push_notifications(queue_prefixes=list(self._queues))
            utils.process_agent_events(queue_prefixes=list(self._queues))

    async def _drive(self, until: float) -> bool:
        """Let the worker run; what ends it early comes out as what it is."""
        try:
            return await self._runtime.loop.run(until)
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
        if name is not None and name in self._runtime.jobs.known():
            raise BadInput(f"job {name!r} exists already; names of jobs are unique within a test")
        job = create_new_job(agent, caller_frame=_callers_frame(), **options)
        self._runtime.jobs.meet(job, name)
        if message is not None:
            job.push_user_message(message)
        return job

    def jobs(self) -> Mapping[str, Any]:
        """Return all jobs by name."""
        return dict(self._runtime.jobs.known())

    def remarks(self) -> Sequence[StoreRemark]:
        """Return what the store has done to variables so far."""
        return tuple(self._stored.remarks)

    def describe(self, job: Any) -> AppJob:
        """Return what there is to say about a job."""
        runtime, jobs = self._runtime, self._runtime.jobs.known()
        name = runtime.jobs.name_of(job)
        tools = (*job.agent.all_tools, *statek.find_tools(None, include_hidden=True))
        return app_job(
            job_record(
                name,
                runtime.facts_of(name, future=FUTURE),
                [event for event in runtime.recorder.events if event.job == name],
            ),
            parent=parent_of(job, jobs),
            tools=(tool.__name__ for tool in tools),
        )

    # -- time ------------------------------------------------------------------------------------------------------

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Refuse: dbzero keeps what STATEK does."""
        raise BadInput(
            f"keep_in({address!r}): the installed package keeps everything in dbzero; run this test with "
            "--statek-backend=reference"
        )

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._runtime.time.now

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do `action` at virtual second `when`."""
        self._runtime.time.at(when, action)

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
            waiting=tuple(waiting_names(self._runtime.jobs.known())),
            worker=self._runtime.loop.died,
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
        stack.enter_context(virtual_timestamps(clock.wall))
        application = InstalledApplication(provider, profile=profile, clock=clock, seed=seed)
        stack.callback(application.close)
        stack.enter_context(application.in_charge())
        yield application
