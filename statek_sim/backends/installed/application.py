"""The application under test on the installed STATEK: STATEK's own worker steps its jobs, in virtual time.

STATEK's global state and the settings from the environment are replaced for one test and restored afterwards
(behaviour 0, 14).
"""

from __future__ import annotations

import asyncio
import builtins
import os
import sys
import tempfile
import time
import types
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import dbzero
import statek
from statek import document, llm_api, llm_harness, locale, runner, settings, system
from statek.executors import chat_log_item, example, utils
from statek.task import create_new_job

from statek_sim.backends.application import AppJob, AppOutcome, app_job
from statek_sim.backends.installed.event_recorder import StoredNames
from statek_sim.backends.installed.messages import Message, answer_of
from statek_sim.backends.installed.peer import job_record
from statek_sim.backends.installed.runtime import InstalledRuntime, configure
from statek_sim.backends.installed.stored_jobs import parent_of
from statek_sim.backends.installed.worker_loop import Interrupted, WorkerLoop, let_loops_nest, waiting_names
from statek_sim.backends.record import FUTURE
from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.errors import BadInput, RunawayJob, StoppedInTool
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.format import FAKE_URLS, PROVIDERS, format_of
from statek_sim.runtime.execution.job_queue import valid_concurrency
from statek_sim.semantics import Profile
from statek_sim.trace import StoreRemark
from statek_sim.wall_clock import plain_dates


class Stopped(Interrupted):
    """Raised if the run cannot continue because a provider raised `reason`; no job may catch this error."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(type(reason).__name__, str(reason))
        self.reason = reason


class InstalledApplication:
    """An `Application` on the installed package. Jobs are STATEK's own objects."""

    backend = "installed"

    def __init__(
        self,
        provider: Provider,
        *,
        profile: Profile,
        clock: VirtualClock,
        seed: int,
    ) -> None:
        self.profile = profile.name
        self._provider = provider
        self._runtime = InstalledRuntime(
            self._ask,
            clock,
            partial(
                WorkerLoop,
                max_concurrency=100,
                dormant=profile.waiting_job_is_dormant,
                pass_seconds=profile.warmup_wait_pass_seconds,
                order="fifo",
                seed=seed,
            ),
        )
        self._stored = StoredNames(self.now, self._runtime.jobs.name_of)
        self._events = asyncio.new_event_loop()
        let_loops_nest(self._events)
        self._runtime.time.rule(self._events)
        self._runtime.loop.on_pass.append(self._deliver_queued)
        self._queues: dict[Any, None] = {}

    def _ask(self, message: Message) -> Message:
        try:
            return answer_of(self._provider, message)
        except Exception as failure:
            raise Stopped(failure) from failure

    @contextmanager
    def in_charge(self) -> Iterator[None]:
        """Control STATEK, its worker loop and its tools' sleeps inside the block; restore them afterwards."""
        sleep, printed, left = time.sleep, builtins.print, builtins.exit
        with self._runtime.installed():
            self._stored.install()
            time.sleep = self._tool_sleeps(sleep)  # type: ignore[assignment]  # numbers are all it is called with
            utils.run_jobs_loop = self._serve
            utils.unsuspend_jobs = _refuse_endless_loop
            runner.asyncio = types.SimpleNamespace(
                get_running_loop=asyncio.get_running_loop, run=partial(_complete, self._events)
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
        """Replaces `run_jobs_loop`, which never returns; this function returns when no work is left.

        Raises the error that ends the loop; later runs have no agents' loops.
        """
        loop = self._runtime.loop
        loop.most, loop.provider = valid_concurrency(max_concurrency), provider
        self._queues.update(dict.fromkeys(queue_prefixes))
        if start_jobs_func is not None and start_jobs_func not in loop.on_pass:
            loop.on_pass.append(start_jobs_func)
        await self._drive(FOREVER)
        error = loop.error
        if error is not None:
            loop.on_pass[:] = [self._deliver_queued]
            loop.restart()
            raise error

    def _deliver_queued(self, capacity: int) -> None:
        if self._queues:
            utils.process_push_notifications(queue_prefixes=list(self._queues))
            utils.process_agent_events(max_count=max(0, capacity), queue_prefixes=list(self._queues))

    async def _drive(self, until: float) -> bool:
        """Run the worker until `until`; return whether no work was left. Raises the error that ended the run."""
        try:
            settled = await self._runtime.loop.run(until)
            if not settled and self._in_tools:
                raise StoppedInTool(self.now())
            return settled
        except Stopped as stop:
            raise stop.reason from None
        except Interrupted as end:
            raise RunawayJob(end.message) from None
        finally:
            if self._in_tools:
                # Nothing would ever wake the event loops nested in this one.
                self._events.set_exception_handler(lambda *_: None)
                self._events.stop()

    @property
    def _in_tools(self) -> bool:
        """Whether async tools are in progress. Each of them is awaited in an event loop nested in this one."""
        loop: Any = self._events  # nest_asyncio has patched it
        return bool(loop._num_runs_pending > 1)

    def close(self) -> None:
        """Cancel everything in progress and close the event loop."""
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
        """Create a job as the application would; raises `BadInput` if another job has this name."""
        if name is not None and name in self._runtime.jobs.known():
            raise BadInput(f"job {name!r} already exists; job names must be unique within a test")
        job = create_new_job(agent, caller_frame=_callers_frame(), **options)
        self._runtime.jobs.meet(job, name)
        if message is not None:
            job.push_user_message(message)
        return job

    def jobs(self) -> Mapping[str, Any]:
        """Return all jobs, keyed by name, in creation order."""
        return dict(self._runtime.jobs.known())

    def remarks(self) -> Sequence[StoreRemark]:
        """Return how the store has affected variables so far."""
        return tuple(self._stored.remarks)

    def describe(self, job: Any) -> AppJob:
        """Return a job's current state."""
        runtime, jobs = self._runtime, self._runtime.jobs.known()
        name = runtime.jobs.name_of(job)
        tools = (*job.agent.all_tools, *statek.find_tools(None, include_hidden=True))
        return app_job(
            job_record(
                runtime.facts_of(name, future=FUTURE),
                [event for event in runtime.recorder.events if event.job == name],
            ),
            parent=parent_of(job, jobs),
            tools=(tool.__name__ for tool in tools),
        )

    # -- time ------------------------------------------------------------------------------------------------------

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Raise `BadInput`, because dbzero already keeps STATEK's state."""
        raise BadInput(
            f"keep_in({address!r}): the installed package already stores everything in dbzero; run "
            "this test with --statek-backend=reference"
        )

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self._runtime.time.now

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`."""
        self._runtime.time.at(when, action)

    def run(self, until: float) -> AppOutcome:
        """Run until no work is left, or until virtual second `until`."""
        settled = bool(_complete(self._events, self._drive(until)))
        return AppOutcome(
            at=self.now(),
            settled=settled,
            waiting=tuple(waiting_names(self._runtime.jobs.known())),
            worker=self._runtime.loop.died,
        )


def _complete(loop: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on an event loop with nested runs.

    After `loop.stop()`, the nested runs also end, with `Interrupted`, which STATEK does not catch.
    """
    complete = loop.run_until_complete

    def awaited(future: Any) -> Any:
        try:
            return complete(future)
        except RuntimeError:
            if loop._stopping:
                # STATEK does not catch this error, so the job does nothing more after the run ends.
                raise Interrupted("RunOver", "the run is over") from None
            raise

    loop.run_until_complete = awaited
    try:
        return complete(coroutine)
    finally:
        loop._stopping = False
        loop.run_until_complete = complete


def _callers_frame() -> types.FrameType | None:
    """Return the frame of the test that creates a job; STATEK copies variables for warmup code from this frame."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("statek_sim."):
        frame = frame.f_back
    return frame


def _refuse_endless_loop() -> None:
    """Replaces the start of STATEK's loop, because code that imported `run_jobs_loop` by name would never return."""
    raise BadInput(
        "run_jobs_loop never ends; in a test, call statek_app.run(), start_statek, run_agentic_loop or "
        "run_agentic_fleet, which end when no work is left"
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
    """Prepare the installed STATEK for one test; all changes are undone when the block ends."""
    with ExitStack() as stack:
        stack.enter_context(isolated(settings, limits))
        stack.enter_context(plain_dates())
        stack.enter_context(virtual_timestamps(clock.wall))
        application = InstalledApplication(provider, profile=profile, clock=clock, seed=seed)
        stack.callback(application.close)
        stack.enter_context(application.in_charge())
        yield application


PREFIX: Final = "statek-test"
"""Name of the prefix in which a test's store is opened; the test may open other prefixes."""


_CACHED: Final = (
    settings.get_statek_settings,
    settings.get_provider_settings,
    llm_harness.get_llm_harness,
    llm_api.LLM_API.get,
    example.load_examples,
    document.load_documents,
)
"""STATEK functions that cache their first result."""


@contextmanager
def isolated(wanted: StatekSettings, limits: LLM_Harness) -> Iterator[None]:
    """Give STATEK an empty store, these settings and limits, and no environment; restore everything afterwards."""
    with ExitStack() as stack:
        stack.enter_context(_scrubbed_environment())
        stack.enter_context(_registries_restored())
        stack.callback(_forget)
        _forget()
        stack.enter_context(_temporary_store())
        configure(wanted.given, asdict(limits.limits))
        yield


@contextmanager
def _temporary_store() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="statek-test-") as folder:
        dbzero.init(folder, read_write=True)
        try:
            # Background commits would make runs vary.
            dbzero.open(PREFIX, "rw", autocommit=False)
            yield
        finally:
            dbzero.close()


@contextmanager
def _scrubbed_environment() -> Iterator[None]:
    """Hide the variables and `.env` files that STATEK reads, and give providers addresses that the script answers."""
    before = dict(os.environ)
    env_file = settings.StatekSettings.model_config.get("env_file")
    fields = {name.upper() for name in settings.StatekSettings.model_fields}
    for name in before:
        if name.upper() in fields or name.startswith(("STATEK_", "FULL_AGENT_TRACE")) or _is_provider(name):
            del os.environ[name]
    for provider in PROVIDERS:
        os.environ[f"{provider}_API_URL"] = FAKE_URLS[format_of(provider).NAME]
        os.environ[f"{provider}_API_KEY"] = "scripted"
    settings.StatekSettings.model_config["env_file"] = None
    try:
        yield
    finally:
        settings.StatekSettings.model_config["env_file"] = env_file
        os.environ.clear()
        os.environ.update(before)


def _is_provider(name: str) -> bool:
    return name.endswith(("_API_URL", "_API_KEY", "_RESPONSE_FORMAT_FILE", "_USE_PROMPT_CACHING"))


@contextmanager
def virtual_timestamps(now: Callable[[], datetime]) -> Iterator[None]:
    """Make chat log items use `now()`; their classes hold a reference to the real clock since import time."""
    makers: list[Any] = [
        vars(kind)["__init__"] for kind in vars(chat_log_item).values() if is_dataclass(kind)
    ]
    with ExitStack() as stack:
        for maker in makers:
            cells = dict(zip(maker.__code__.co_freevars, maker.__closure__ or (), strict=True))
            cell = cells.get("_dflt_timestamp")
            if cell is not None:
                stack.callback(setattr, cell, "cell_contents", cell.cell_contents)
                cell.cell_contents = now
        yield


@contextmanager
def _registries_restored() -> Iterator[None]:
    """Undo a test's registrations, except those made while the application's modules were imported."""
    tools = list(system._TOOL_REGISTRY)
    providers = dict(llm_api._CUSTOM_LLM_API_PROVIDERS)
    try:
        yield
    finally:
        system._TOOL_REGISTRY[:] = tools
        _restore(llm_api._CUSTOM_LLM_API_PROVIDERS, providers)
        if hasattr(utils, "_HIDDEN_REGISTERED_TOOL_NAMES"):
            utils._HIDDEN_REGISTERED_TOOL_NAMES = None


def _restore(registry: dict[str, Any], before: Mapping[str, Any]) -> None:
    registry.clear()
    registry.update(before)


def _forget() -> None:
    """Clear STATEK's caches."""
    settings.set_statek_settings(None)
    for function in _CACHED:
        function.cache_clear()
    # Locales are stored, and the previous test's store is closed.
    locale._LOCALE_CACHE.clear()
