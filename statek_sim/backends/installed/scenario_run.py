"""One scenario on STATEK: its agents, jobs and events, in a store of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any, Final

warnings.simplefilter("ignore")

import dbzero  # noqa: E402  # its warnings are not ours
import statek  # noqa: E402
from statek.chat_style import ChatStyle  # noqa: E402
from statek.llm_harness import LLM_Harness  # noqa: E402
from statek.settings import StatekSettings  # noqa: E402

from statek_sim import trace as events  # noqa: E402
from statek_sim.backends.driver import Driver, Refused  # noqa: E402
from statek_sim.backends.installed import stored_world  # noqa: E402
from statek_sim.backends.installed.event_recorder import ToolWitness, Witness  # noqa: E402
from statek_sim.backends.installed.facts import run_facts  # noqa: E402
from statek_sim.backends.installed.instrumentation import Watching  # noqa: E402
from statek_sim.backends.installed.job_registry import Cast  # noqa: E402
from statek_sim.backends.installed.runtime_adapter import InstalledSide, is_async, outbox  # noqa: E402
from statek_sim.backends.installed.stored_objects import shown  # noqa: E402
from statek_sim.backends.installed.transport import Transport  # noqa: E402
from statek_sim.backends.installed.virtual_time import VirtualTime, allow_nested_runs, install_wall_clock  # noqa: E402
from statek_sim.backends.installed.watchdog import Watchdog  # noqa: E402
from statek_sim.backends.installed.wire import Line, Message  # noqa: E402
from statek_sim.backends.installed.worker_crash import Killing, hand_over, take_over  # noqa: E402
from statek_sim.backends.installed.worker_loop import Interrupted, WorkerLoop  # noqa: E402
from statek_sim.backends.scenario_values import style_of_all  # noqa: E402
from statek_sim.errors import StatekSimError  # noqa: E402
from statek_sim.scenario.schema import Scenario, ScenarioText  # noqa: E402
from statek_sim.values import JSON  # noqa: E402

_CACHE_BYTES: Final = 64 * 2**20


def perform(line: Line, order: Message, folder: str, handover: Message | None) -> Message:
    """Run the scenario of `order`, or what is left of it after `handover`, and return its facts."""
    text = ScenarioText.model_validate_json(json.dumps(order["scenario"]))
    scenario = Scenario.placed(text, text.jobs, suite="", path=Path("-"), line=0, file_digest="")
    # The store allocates its cache when it is opened: the default of 2 GiB takes longer than most scenarios.
    dbzero.init(folder, read_write=True, cache_size=_CACHE_BYTES)
    # Nothing reads the store after the run, and commits in the background would be one more thing that varies.
    dbzero.open("scenario", "rw", autocommit=False)
    # In front, as the other side has them: one name means one module, whatever runs it.
    sys.path[:0] = map(str, order["module_paths"])  # type: ignore[arg-type]  # the other side sends a list
    stage = Stage(line, scenario, folder, order)
    stage.configure(order)
    return stage.play(handover)


class Stage:
    """The objects of one run."""

    def __init__(self, line: Line, scenario: Scenario, folder: str, order: Message) -> None:
        self.scenario = scenario
        self._line = line
        self.time = VirtualTime()
        self.delivered: dict[str, list[JSON]] = {}
        self.cast = Cast(scenario.agents, style_of_all(scenario))
        self.witness = Witness(lambda: self.time.now, self.cast.name_of, self._answer_to, self.cast.newcomer)
        self.cast.witness = self.witness
        self.transport = Transport(line, self.time, self.witness, self._current)
        self.loop = WorkerLoop(
            self.time,
            self.cast.known,
            max_concurrency=scenario.max_concurrency,
            dormant=bool(order["dormant"]),
            pass_seconds=float(order["pass_seconds"]),  # type: ignore[arg-type]  # the other side sends a number
            order=scenario.order,
            seed=scenario.seed,
        )
        self.side = InstalledSide(
            self.time,
            self.loop,
            self.cast,
            leave=partial(hand_over, self, folder),
            restarted=lambda: self.witness.tell(events.WorldChanged, "", "worker", "restarted"),
        )
        self.driver = Driver(scenario, self.side)
        self.killing = Killing(
            order.get("kill"),
            lambda: self.time.now,
            lambda: self.side.kill("killed by exploration", in_call=True),
        )
        self.witness.heard = self.killing.heard
        self.loop.before_step = self._step_begins
        self.loop.on_death = lambda reason: self.witness.tell(events.WorldChanged, "", "worker", reason)
        self.error: dict[str, JSON] | None = None
        self.settled = False
        self.broke_off = True
        self.facts: Message = {}

    # -- setting up ------------------------------------------------------------------------------------------------

    def configure(self, order: Message) -> None:
        """Bring STATEK into the state that the scenario wants it in."""
        _init_statek(order)
        self.transport.install()
        asyncio.sleep = self._sleep  # type: ignore[assignment]  # nothing sleeps for real
        Watching(self.witness, Watchdog(self._lost)).install()
        ToolWitness(
            self.witness, lambda job, tool: self.driver.tool_returned(self.cast.name_of(job), tool)
        ).install()
        stored_world.HANDLED.tell = lambda job, *facts: self.witness.tell(events.HandlerRan, job, *facts)
        outbox.deliver = self._deliver
        install_wall_clock(lambda: self.time.now)

    # -- what happens ----------------------------------------------------------------------------------------------

    def _answer_to(self, name: str) -> tuple[int, int | None, int | None]:
        return self.transport.turn_of(name), *self.transport.reported.get(name, (None, None))

    def _step_begins(self, name: str) -> None:
        self.transport.step_begins(name)
        self.witness.tell(events.StepStarted, name, self.loop.steps[name])

    def _world_changed(self, subject: str, what: str) -> None:
        self.witness.tell(events.WorldChanged, self.cast.name_of(statek.get_current_job()), subject, what)

    def _lost(self, kind: str, message: str) -> None:
        """Say how this process has to end, and end it."""
        self._line.send({"lost": {"type": kind, "message": message}, "events": self.witness.taken()})
        os.kill(os.getpid(), signal.SIGKILL)

    async def _sleep(self, seconds: float, result: Any = None) -> Any:
        """Stand in for `asyncio.sleep`; between two attempts at a request it is STATEK's client that sleeps."""
        self.witness.asks_again(self.cast.name_of(statek.get_current_job()), seconds)
        return await self.time.sleep(seconds, result)

    def _current(self) -> tuple[str, str, str | None]:
        job = statek.get_current_job()
        style = job.job_def.chat_style
        return (
            self.cast.name_of(job),
            job.agent.role,
            None if style is None else str(style).rpartition(".")[2],
        )

    # -- running ---------------------------------------------------------------------------------------------------

    def play(self, handover: Message | None) -> Message:
        """Run to the end and return the facts."""
        asyncio.run(self._drive(handover))
        return self.facts

    async def _drive(self, handover: Message | None) -> None:
        await self._run(handover)
        self.facts = run_facts(self)
        if self.loop.busy:
            # Async tools are in the middle of their work, and STATEK in the middle of loops inside of one another.
            self._line.send({"facts": self.facts})
            os._exit(0)

    async def _run(self, handover: Message | None) -> None:
        self.time.rule(asyncio.get_running_loop())
        try:
            await self._prepare(handover)
            self.driver.begin()
            if self.killing.restart_at is not None and self.loop.died is not None:
                self.side.at(self.killing.restart_at, self.side.restart)
            self.settled = await self.loop.run(self.scenario.until)
            self.broke_off = False
            self.driver.check_finished()
        except StatekSimError as failure:
            self.error = {"type": type(failure).__name__, "message": str(failure)}
        except (Interrupted, Refused) as end:
            self.error = {"type": end.kind, "message": str(end)}

    async def _prepare(self, handover: Message | None) -> None:
        """Bring world, agents and worker to where the run begins or goes on."""
        stored_world.reset(self.scenario.world, self._world_changed)
        if any(is_async(name) for text in self.scenario.agents.values() for name in text.tools):
            await allow_nested_runs()
        if handover is not None:
            take_over(self, handover)
            self.side.fresh = True
        self.driver.prepare()
        if handover is None:
            self.side.begin_work()
        elif handover["restart"]:
            self.side.begin_anew()

    def _deliver(self, body: str, media: str | None) -> None:
        """Keep what was said to the user of the current job."""
        name = self.cast.name_of(statek.get_current_job())
        self.delivered.setdefault(name, []).append({"body": body, "media": media})
        self.witness.tell(events.Delivered, name, shown(body), None if media is None else shown(media))


def _init_statek(order: Message) -> None:
    """Give STATEK its settings and limits."""
    access: Any = order["environment"]
    os.environ.update(access)
    settings: Any = dict(order["settings"])  # type: ignore[arg-type]  # the other side sends a mapping
    if settings.get("chat_style") is not None:
        # A member of the store's enumeration.
        settings["chat_style"] = ChatStyle[settings["chat_style"].upper()]
    statek.init(StatekSettings(**settings))
    limits: Any = order["limits"]
    _use_harness(LLM_Harness(**limits))


def _use_harness(harness: Any) -> None:
    """Put `harness` in the place of the one that STATEK would make: settings cannot say "unlimited"."""

    def get_llm_harness() -> Any:
        return harness

    for name, module in list(sys.modules.items()):
        if name.startswith("statek.") and hasattr(module, "get_llm_harness"):
            module.get_llm_harness = get_llm_harness  # type: ignore[attr-defined]
