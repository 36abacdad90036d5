"""One scenario on STATEK: its agents, jobs and events, in a store of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

warnings.simplefilter("ignore")

import dbzero  # noqa: E402  # its warnings are not ours
import statek  # noqa: E402
from statek.chat_style import ChatStyle  # noqa: E402
from statek.executors import utils  # noqa: E402
from statek.llm_harness import LLM_Harness  # noqa: E402
from statek.settings import StatekSettings  # noqa: E402
from statek.task import create_new_job, create_sub_task  # noqa: E402

from statek_sim import trace as events  # noqa: E402
from statek_sim.backends.driver import Driver, Refused, style_of_all  # noqa: E402
from statek_sim.backends.installed import stored_objects, stored_world  # noqa: E402
from statek_sim.backends.installed.agents import is_async, make_agent, outbox  # noqa: E402
from statek_sim.backends.installed.cast import Cast  # noqa: E402
from statek_sim.backends.installed.facts import run_facts  # noqa: E402
from statek_sim.backends.installed.handover import hand_over, take_over  # noqa: E402
from statek_sim.backends.installed.killing import Killing  # noqa: E402
from statek_sim.backends.installed.loop import Interrupted, WorkerLoop  # noqa: E402
from statek_sim.backends.installed.stored_value import shown  # noqa: E402
from statek_sim.backends.installed.tool_witness import ToolWitness  # noqa: E402
from statek_sim.backends.installed.transport import Transport  # noqa: E402
from statek_sim.backends.installed.virtual_time import VirtualTime, allow_nested_runs, install_wall_clock  # noqa: E402
from statek_sim.backends.installed.watchdog import Watchdog  # noqa: E402
from statek_sim.backends.installed.watching import Watching  # noqa: E402
from statek_sim.backends.installed.wire import Line, Message  # noqa: E402
from statek_sim.backends.installed.witness import Witness  # noqa: E402
from statek_sim.errors import BadInput, UnusedEvents  # noqa: E402
from statek_sim.scenario.references import WorldReference  # noqa: E402
from statek_sim.scenario.schema import JobText, Scenario, ScenarioText  # noqa: E402
from statek_sim.values import JSON  # noqa: E402
from statek_sim.world.external_futures import ExternalEvents  # noqa: E402

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
        self._folder = folder
        self.time = VirtualTime()
        self.delivered: dict[str, list[JSON]] = {}
        self.driver = Driver(scenario, self)
        self._loops: list[Callable[[int], None]] = []
        self._fresh = False
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
        self.killing = Killing(
            order.get("kill"), lambda: self.time.now, lambda: self.kill("killed by exploration", in_call=True)
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
        _init_statek(self.scenario, order)
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

    def _begin_anew(self) -> None:
        self._fresh = False
        self.witness.tell(events.WorldChanged, "", "worker", "restarted")
        self.loop.on_pass[:] = self._loops
        self.loop.restart()

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

    # -- the stage that the driver plays on ---------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The virtual second."""
        return self.time.now

    @property
    def events(self) -> ExternalEvents:
        """The external events of the world."""
        return stored_objects.LIVE.events

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, and offer the jobs that it made able to run."""

        def act() -> None:
            action()
            self.loop.offer()

        self.time.at(when, act)

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job as an application does."""
        agent = stored_world.AGENTS[text.agent or next(iter(stored_world.AGENTS))]
        parent = self.cast.jobs[text.parent] if text.parent is not None else None
        job = _new_job(agent, shared, parent, text.warmup)
        self.cast.meet(job, name)
        return job

    def job(self, name: str) -> Any:
        """Return a job by its name."""
        return self.cast.jobs[name]

    def thing(self, reference: WorldReference) -> object:
        """Return what a reference to the world stands for."""
        return _thing(reference)

    def make_subtask(self, job: Any, subtask_id: str) -> Any:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def find_subtask(self, subtask_id: str) -> Any:
        """Return the subtask of this id that a tool made."""
        handles = (job.py_env.local_state.get("sub_task_handler") for job in self.cast.known().values())
        return next((handle for handle in handles if handle is not None and handle.id == subtask_id), None)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker: this process, from wherever it is."""
        self.loop.die(reason)
        hand_over(self, self._folder, restart=False)

    def restart(self) -> None:
        """Let a new worker process begin to work: this one, if it has done nothing since it opened the store."""
        if not self._fresh:
            hand_over(self, self._folder, restart=True)
        self._begin_anew()

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
            await self._set(handover)
            self.driver.begin()
            if self.killing.restart_at is not None and self.loop.died is not None:
                self.at(self.killing.restart_at, self.restart)
            self.settled = await self.loop.run(self.scenario.until)
            self.broke_off = False
            self.driver.check_finished()
        except BadInput as refused:
            self.error = {"type": "BadInput", "message": str(refused)}
        except UnusedEvents as left:
            self.error = {"type": type(left).__name__, "message": str(left)}
        except Interrupted as end:
            self.error = {"type": end.kind, "message": end.message}
        except Refused as refusal:
            self.error = {"type": type(refusal.reason).__name__, "message": str(refusal.reason)}

    async def _set(self, handover: Message | None) -> None:
        """Bring the world, the agents and their loops to where the run begins or goes on."""
        stored_world.reset(self.scenario.world, self._world_changed)
        if any(is_async(name) for text in self.scenario.agents.values() for name in text.tools):
            await allow_nested_runs()
        if handover is None:
            for role, text in self.scenario.agents.items():
                try:
                    stored_world.AGENTS[role] = make_agent(role, text)
                except (SyntaxError, ValueError) as reason:
                    # Warmup that cannot be read.
                    raise Refused(reason) from reason
        else:
            take_over(self, handover)
            self._fresh = True
        for role in self.scenario.loops:
            self._loops.append(await _prepared_loop(role, self.scenario.agents[role].warmup))
        if handover is None:
            self.loop.on_pass[:] = self._loops
        elif handover["restart"]:
            self._begin_anew()

    def _deliver(self, body: str, media: str | None) -> None:
        """Keep what was said to the user of the current job."""
        name = self.cast.name_of(statek.get_current_job())
        self.delivered.setdefault(name, []).append({"body": body, "media": media})
        self.witness.tell(events.Delivered, name, shown(body), None if media is None else shown(media))


def _thing(reference: WorldReference) -> object:
    world = stored_world.WORLD
    match reference.kind:
        case "owner":
            if reference.name in ("", world.owner.id):
                return world.owner
            if reference.name not in world.owners:
                # Made once: an object of the store is there whether somebody holds it or not.
                other: Any = stored_objects.QueueOwner(reference.name)
                world.owners[reference.name] = other
            return world.owners[reference.name]
        case "item":
            return world.queue.items[reference.name]
        case "future":
            return world.events[reference.name]
        case "queue":
            return stored_objects.WorkQueue()
        case _:
            assert_never(reference.kind)


def _init_statek(scenario: Scenario, order: Message) -> None:
    """Give STATEK its settings and limits."""
    access: Any = order["environment"]
    os.environ.update(access)
    settings: Any = dict(order["settings"])  # type: ignore[arg-type]  # the other side sends a mapping
    style = style_of_all(scenario)
    if style is not None:
        settings["chat_style"] = ChatStyle[style]
    statek.init(StatekSettings(**settings))
    limits: Any = order["limits"]
    _use_harness(LLM_Harness(**limits))


async def _prepared_loop(role: str, warmup: str | None) -> Callable[[int], None]:
    """Return what STATEK makes to start jobs of an agent; its own loop is not run."""
    made: list[Callable[[int], None]] = []

    async def keep(*, start_jobs_func: Callable[[int], None], **_: Any) -> None:
        made.append(start_jobs_func)

    ready = stored_objects.LIVE.queue.ready
    run_loop, utils.run_jobs_loop = utils.run_jobs_loop, keep
    try:
        await utils.run_agentic_loop(stored_world.AGENTS[role], warmup, ready, queue_prefixes=())
    finally:
        utils.run_jobs_loop = run_loop
    return made[0]


def _new_job(_agent: Any, _shared: Mapping[str, Any], _parent: Any, _warmup: str | None) -> Any:
    """Create a job. STATEK copies the caller's variables that warmup code reads: here they have unlikely names."""
    return create_new_job(_agent, _shared, _parent, _warmup)


def _use_harness(harness: Any) -> None:
    """Put `harness` in the place of the one that STATEK would make: settings cannot say "unlimited"."""

    def get_llm_harness() -> Any:
        return harness

    for name, module in list(sys.modules.items()):
        if name.startswith("statek.") and hasattr(module, "get_llm_harness"):
            module.get_llm_harness = get_llm_harness  # type: ignore[attr-defined]
