"""Runs a scenario on STATEK: agents, jobs and events run in their own store, and endless code is killed."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, NoReturn

import dbzero
import statek
from statek.chat_style import ChatStyle
from statek.executors import utils

from statek_sim import trace as events
from statek_sim.backends.driver import Driver, Refused, metadata_of, style_of_all, style_of_definitions
from statek_sim.backends.installed import stored_world
from statek_sim.backends.installed.messages import Line, Message
from statek_sim.backends.installed.runtime import InstalledRuntime, configure
from statek_sim.backends.installed.runtime_adapter import (
    InstalledSide,
    UnusableTool,
    hand_over,
    is_async,
    outbox,
    take_over,
)
from statek_sim.backends.installed.stored_jobs import shown
from statek_sim.backends.installed.worker_loop import (
    Interrupted,
    WorkerLoop,
    allow_nested_runs,
    install_wall_clock,
    waiting_names,
)
from statek_sim.clock import VirtualClock
from statek_sim.errors import StatekSimError
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.trace import Event
from statek_sim.values import JSON

_CACHE_BYTES: Final = 64 * 2**20


def perform(line: Line, order: Message, folder: str, handover: Message | None) -> int:
    """Run the scenario in `order` (or, after `handover`, the rest of it) in this fork; return the exit code.

    Sends the run's facts, or the reason why there are none, to the parent process.
    """
    os.chdir(folder)
    line.send({"pid": os.getpid()})
    try:
        line.send({"facts": _facts(line, order, folder, handover)})
    except UnusableTool as problem:
        line.send({"unusable": str(problem)})
        return 1
    except (SystemExit, KeyboardInterrupt) as end:
        # From agent code: asyncio does not handle these two, and STATEK's worker does not catch them.
        line.send(
            {"lost": {"type": "Ends", "message": f"its process ended with {type(end).__name__}: {end}"}}
        )
        return 1
    except BaseException as error:  # noqa: BLE001  # the other side reports it
        line.send({"broken": f"{type(error).__name__}: {error}"})
        return 1
    return 0


def _facts(line: Line, order: Message, folder: str, handover: Message | None) -> Message:
    text = ScenarioText.model_validate_json(json.dumps(order["scenario"]))
    scenario = Scenario.placed(text, text.jobs, suite="", path=Path("-"), line=0, file_digest="")
    # The store allocates its cache when it is opened: the default of 2 GiB takes longer than most scenarios.
    dbzero.init(folder, read_write=True, cache_size=_CACHE_BYTES)
    # Nothing reads the store after the run, and background commits would make runs vary.
    dbzero.open("scenario", "rw", autocommit=False)
    # At the front, as in the parent process, so that a name means the same module in both.
    sys.path[:0] = map(str, order["module_paths"])  # type: ignore[arg-type]  # the other side sends a list
    stage = Stage(line, scenario, folder, order)
    stage.configure(order)
    return stage.play(handover)


class Stage:
    """A run: STATEK, the driver, and the connection to the parent process."""

    def __init__(self, line: Line, scenario: Scenario, folder: str, order: Message) -> None:
        self.scenario = scenario
        self._line = line
        self.runtime = InstalledRuntime(
            self._ask,
            VirtualClock(),
            partial(
                WorkerLoop,
                max_concurrency=scenario.max_concurrency,
                dormant=bool(order["dormant"]),
                pass_seconds=float(order["pass_seconds"]),  # type: ignore[arg-type]  # the other side sends a number
                order=scenario.order,
                seed=scenario.seed,
            ),
        )
        self.runtime.jobs.met = self._met
        self._folder = folder
        self.side = InstalledSide(self.runtime, leave=self._leave)
        self.driver = Driver(scenario, self.side)
        self._style = style_of_all(scenario)
        self.error: dict[str, JSON] | None = None
        self.settled = False
        self.broke_off = True

    def _leave(self, restart: bool) -> NoReturn:
        hand_over(self.runtime, self.driver, self._folder, restart=restart)

    # -- setting up ------------------------------------------------------------------------------------------------

    def configure(self, order: Message) -> None:
        """Set up the environment, settings and limits, and wrap STATEK's functions."""
        given: Any = order
        os.environ.update(given["environment"])
        configure(given["settings"], given["limits"])
        Watchdog(self._lost).install()
        self.runtime.install()
        self.runtime.tool_returned = self.driver.tool_returned
        outbox.deliver = self._deliver
        install_wall_clock(lambda: self.runtime.time.now)

    # -- events ----------------------------------------------------------------------------------------------------

    def _ask(self, message: Message) -> Message:
        return self._line.ask({**message, "events": self.runtime.recorder.taken()})

    def _met(self, name: str, job: Any) -> None:
        """Give a new job its agent's chat style, and report the job."""
        text = self.scenario.agents[job.agent.role]
        style = style_of_definitions(text, self._style)
        if style is not None:
            job.job_def.set_chat_style(ChatStyle[style])
        parent = None if job.parent_job is None else self.runtime.jobs.name_of(job.parent_job)
        self._tell(events.JobCreated, name, job.agent.role, metadata_of(text)["MODEL"], parent)

    def _tell(self, kind: Callable[..., Event], job: Any, *facts: object) -> None:
        self.runtime.recorder.tell(kind, job, *facts)

    def _world_changed(self, subject: str, what: str) -> None:
        self._tell(events.WorldChanged, statek.get_current_job(), subject, what)

    def _deliver(self, body: str, media: str | None) -> None:
        """Report a message that the current job sent to its user."""
        shown_media = None if media is None else shown(media)
        self._tell(events.Delivered, statek.get_current_job(), shown(body), shown_media)

    def _lost(self, kind: str, message: str) -> None:
        """Report why this process must end, and end it."""
        self._line.send({"lost": {"type": kind, "message": message}, "events": self.runtime.recorder.taken()})
        os.kill(os.getpid(), signal.SIGKILL)

    # -- running ---------------------------------------------------------------------------------------------------

    def play(self, handover: Message | None) -> Message:
        """Run to the end and return the facts."""
        return asyncio.run(self._drive(handover))

    async def _drive(self, handover: Message | None) -> Message:
        await self._run(handover)
        facts = self._run_facts()
        if self.runtime.loop.busy:
            # Async tools are in the middle of their work, and STATEK is in the middle of nested loops.
            self._line.send({"facts": facts})
            os._exit(0)
        return facts

    async def _run(self, handover: Message | None) -> None:
        loop = self.runtime.loop
        self.runtime.time.rule(asyncio.get_running_loop())
        try:
            await self._prepare(handover)
            self.driver.begin()
            self.settled = await loop.run(self.scenario.until)
            self.broke_off = False
            self.driver.check_finished()
        except StatekSimError as failure:
            self.error = {"type": type(failure).__name__, "message": str(failure)}
        except (Interrupted, Refused) as end:
            self.error = {"type": end.kind, "message": str(end)}

    async def _prepare(self, handover: Message | None) -> None:
        """Set up the world, agents and worker for a run that starts or resumes."""
        stored_world.reset(self.scenario.world, self._world_changed)
        if any(is_async(name) for text in self.scenario.agents.values() for name in text.tools):
            await allow_nested_runs()
        if handover is not None:
            take_over(self.runtime, self.driver, handover)
            self.side.fresh = True
        self.driver.prepare()
        if handover is None:
            self.side.begin_work()
        elif handover["restart"]:
            self.side.begin_anew()

    def _run_facts(self) -> Message:
        """Return the run's facts; store ids are replaced by job names."""
        jobs = self.runtime.jobs.known()
        facts: Message = {
            "jobs": {name: self.runtime.facts_of(name) for name in jobs},
            "events": self.runtime.recorder.taken(),
            "items": stored_world.items_now(),
            "leaked_claims": stored_world.leaked_claims(),
            "ledger": list(stored_world.WORLD.ledger.lines),
            # As on the reference runtime, a run that was interrupted has no waiting jobs.
            "idle": not self.broke_off and any(True for _ in waiting_names(jobs)),
            "settled": self.settled,
            "worker": self.runtime.loop.died,
            "error": self.error,
        }
        text = json.dumps(facts)
        for uuid, name in self.runtime.jobs.names.items():
            text = text.replace(uuid, name)
        named: Message = json.loads(text)
        return named


MOST_SECONDS: Final = 1.0
"""Maximum CPU seconds per code block; blocks in scenarios take a thousandth of that."""

MOST_BYTES: Final = 512 * 2**20
"""Maximum memory growth of the process in bytes, as in a small container."""

_EVERY: Final = 0.02


class Watchdog:
    """Watches the time and memory used by running code. `lost(kind, message)` is called once and does not return."""

    def __init__(self, lost: Callable[[str, str], None]) -> None:
        self._lost = lost
        self._begun = 0.0
        self._at_first = _memory()
        signal.signal(signal.SIGPROF, self._look)

    def install(self) -> None:
        """Watch every code block from now on."""
        run = utils._exec_code_body

        @wraps(run)
        def watched(*args: Any, **kwargs: Any) -> None:
            self._begun = _seconds()
            signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
            try:
                run(*args, **kwargs)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)

        utils._exec_code_body = watched

    def _look(self, *_: object) -> None:
        if _memory() - self._at_first > MOST_BYTES:
            self._lost("OutOfMemory", f"killed: the code used more than {MOST_BYTES // 2**20} MiB of memory")
        elif _seconds() - self._begun > MOST_SECONDS:
            self._lost(
                "NeverEnds", f"killed: the code was still running after {MOST_SECONDS:g} s of CPU time"
            )


def _seconds() -> float:
    """Return the CPU time that this process has used, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> int:
    """Return this process's peak memory in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
