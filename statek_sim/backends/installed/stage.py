"""One scenario on STATEK: its agents, jobs and events, in a store of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

warnings.simplefilter("ignore")

import dbzero  # noqa: E402  # its warnings are not ours
import statek  # noqa: E402
from statek.agents import DialogAgent  # noqa: E402
from statek.agents.agent import SupervisedAgent  # noqa: E402
from statek.chat_style import ChatStyle  # noqa: E402
from statek.llm_harness import LLM_Harness  # noqa: E402
from statek.prompt_config import make_system_prompt  # noqa: E402
from statek.settings import StatekSettings  # noqa: E402
from statek.task import create_new_job, create_sub_task  # noqa: E402

from statek_sim import trace as events  # noqa: E402
from statek_sim.backends.installed import stored_objects, stored_world  # noqa: E402
from statek_sim.backends.installed.facts import run_facts  # noqa: E402
from statek_sim.backends.installed.handler_log import shown  # noqa: E402
from statek_sim.backends.installed.loop import Interrupted, WorkerLoop  # noqa: E402
from statek_sim.backends.installed.tool_witness import ToolWitness  # noqa: E402
from statek_sim.backends.installed.transport import Transport  # noqa: E402
from statek_sim.backends.installed.virtual_time import VirtualTime  # noqa: E402
from statek_sim.backends.installed.wire import Line, Message  # noqa: E402
from statek_sim.backends.installed.witness import Witness  # noqa: E402
from statek_sim.ids import IdSource  # noqa: E402
from statek_sim.scenario.event import Event  # noqa: E402
from statek_sim.scenario.references import JobReference, as_reference  # noqa: E402
from statek_sim.scenario.schema import AgentText, JobText, Scenario, ScenarioText  # noqa: E402
from statek_sim.values import JSON  # noqa: E402

_CACHE_BYTES: Final = 64 * 2**20


def perform(line: Line, order: Message, folder: str) -> Message:
    """Run the scenario of `order` and return its facts."""
    text = ScenarioText.model_validate_json(json.dumps(order["scenario"]))
    scenario = Scenario.placed(text, text.jobs, suite="", path=Path("-"), line=0, file_digest="")
    # The store allocates its cache when it is opened: the default of 2 GiB takes longer than most scenarios.
    dbzero.init(folder, read_write=True, cache_size=_CACHE_BYTES)
    # Nothing reads the store after the run, and commits in the background would be one more thing that varies.
    dbzero.open("scenario", "rw", autocommit=False)
    stage = Stage(line, scenario, dormant=bool(order["dormant"]))
    stage.configure(order)
    return stage.play()


@dbzero.memo
class Agent(SupervisedAgent):
    """An agent that jobs can be created for; its class has the name that the reference runtime shows in errors."""


class Refused(Exception):
    """STATEK refused what the scenario's application did."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Stage:
    """The objects of one run."""

    def __init__(self, line: Line, scenario: Scenario, *, dormant: bool) -> None:
        self.scenario = scenario
        self.time = VirtualTime()
        self.jobs: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.handles: dict[str, Any] = {}
        self.delivered: dict[str, list[JSON]] = {}
        self._ids = IdSource()
        self._one_style = False
        self.witness = Witness(lambda: self.time.now, self.name_of, self._answer_to, self._newcomer)
        self.transport = Transport(line, self.time, self.witness, self._current)
        self.loop = WorkerLoop(
            self.time,
            self.known,
            max_concurrency=scenario.max_concurrency,
            dormant=dormant,
            order=scenario.order,
            seed=scenario.seed,
        )
        self.loop.before_step = self._step_begins
        self.loop.on_death = lambda reason: self.witness.tell(events.WorldChanged, "", "worker", reason)
        self.error: dict[str, JSON] | None = None
        self.settled = False

    # -- setting up ------------------------------------------------------------------------------------------------

    def configure(self, order: Message) -> None:
        """Bring STATEK into the state that the scenario wants it in."""
        access: Any = order["environment"]
        os.environ.update(access)
        settings: Any = dict(order["settings"])  # type: ignore[arg-type]  # the other side sends a mapping
        styles = {text.chat_style for text in self.scenario.agents.values() if not text.dialog}
        if len(styles) == 1 and None not in styles:
            # Only dialog agents read their style from their metadata; the others have the setting's.
            settings["chat_style"] = ChatStyle[styles.pop()]
        self._one_style = "chat_style" in settings
        statek.init(StatekSettings(**settings))
        limits: Any = order["limits"]
        _use_harness(LLM_Harness(**limits))
        self.transport.install()
        asyncio.sleep = self._sleep  # type: ignore[assignment]  # nothing sleeps for real
        self.witness.install()
        ToolWitness(self.witness, self._tool_returned).install()
        stored_world.HANDLED.tell = lambda job, *facts: self.witness.tell(events.HandlerRan, job, *facts)
        stored_world.reset(self.scenario.world, self._world_changed)
        try:
            for role, text in self.scenario.agents.items():
                stored_world.AGENTS[role] = self._agent(role, text)
        except (SyntaxError, ValueError) as reason:
            # An agent's warmup that cannot be read.
            self.error = {"type": type(reason).__name__, "message": str(reason)}

    def _agent(self, role: str, text: AgentText) -> Any:
        metadata = {"MODEL": text.model}
        metadata.update({key: str(value) for key, value in text.metadata.items()})
        if text.chat_style is not None:
            metadata["CHAT_STYLE"] = text.chat_style
        if text.tools_scope is not None:
            metadata["LLM_TOOLS_SCOPE"] = text.tools_scope
        if text.temperature is not None:
            metadata["TEMPERATURE"] = str(text.temperature)
        own = [stored_world.TOOLS[name] for name in text.tools]
        prompt = make_system_prompt(text.prompt) if text.prompt else None
        if text.dialog:
            agent = DialogAgent(
                _send, tools=own, role=role, add_answer_tool=text.answer_tool, _metadata=metadata
            )
            agent._system_prompt = prompt
        else:
            agent = Agent(role=role, _system_prompt=prompt, _tools=own, _metadata=metadata)
        if text.reminder is not None:
            agent.set_new_reminder(text.reminder.text, min_dialog_len=text.reminder.min_dialog_len)
        if text.warmup is not None:
            agent.update_warmup_def(text.warmup)
        return agent

    # -- jobs and events -------------------------------------------------------------------------------------------

    def known(self) -> dict[str, Any]:
        """Return the jobs by name, in order of creation, those that STATEK created by itself included."""
        self.witness.introduce()
        return self.jobs

    def _newcomer(self, job: Any) -> None:
        if dbzero.uuid(job) not in self.names:
            self._meet(job, self._ids.next("job"))

    def _meet(self, job: Any, name: str) -> None:
        self.names[dbzero.uuid(job)] = name
        self.jobs[name] = job
        text = self.scenario.agents[job.agent.role]
        if text.chat_style is not None and not text.dialog and not self._one_style:
            job.job_def.set_chat_style(ChatStyle[text.chat_style])
        parent = None if job.parent_job is None else self.name_of(job.parent_job)
        self.witness.tell(events.JobCreated, name, job.agent.role, text.model, parent)

    def name_of(self, job: Any) -> str:
        """Return a job's name."""
        if job is None:
            return ""
        if dbzero.uuid(job) not in self.names:
            self.witness.introduce()
        return self.names[dbzero.uuid(job)]

    # -- what happens ----------------------------------------------------------------------------------------------

    def _answer_to(self, name: str) -> tuple[int, int | None, int | None]:
        return self.transport.turn_of(name), *self.transport.reported.get(name, (None, None))

    def _step_begins(self, name: str) -> None:
        self.transport.step_begins(name)
        self.witness.tell(events.StepStarted, name, self.loop.steps[name])

    def _world_changed(self, subject: str, what: str) -> None:
        self.witness.tell(events.WorldChanged, self.name_of(statek.get_current_job()), subject, what)

    def _tool_returned(self, job: Any, tool: str) -> None:
        """Hear of a tool call that ended."""

    async def _sleep(self, seconds: float, result: Any = None) -> Any:
        """Stand in for `asyncio.sleep`; between two attempts at a request it is STATEK's client that sleeps."""
        self.witness.asks_again(self.name_of(statek.get_current_job()), seconds)
        return await self.time.sleep(seconds, result)

    def _current(self) -> tuple[str, str, str | None]:
        job = statek.get_current_job()
        style = job.job_def.chat_style
        return self.name_of(job), job.agent.role, None if style is None else str(style).rpartition(".")[2]

    def _schedule(self) -> None:
        started = {event.start for event in self.scenario.events if event.action == "start"}
        for name, text in self.scenario.jobs.items():
            if name in started:
                continue
            if text.at:
                self.time.at(text.at, lambda name=name, text=text: self._start(name, text))  # type: ignore[misc]
            else:
                self._start(name, text)
        for event in self.scenario.events:
            self.time.at(event.at, lambda event=event: self._act(event))  # type: ignore[misc]

    def _start(self, name: str, text: JobText) -> None:
        agent = stored_world.AGENTS[text.agent or next(iter(stored_world.AGENTS))]
        parent = self.jobs[text.parent] if text.parent is not None else None
        shared = {key: self._value(value) for key, value in text.locals.items()}
        try:
            job = _new_job(agent, shared, parent, text.warmup)
        except (SyntaxError, ValueError) as reason:
            raise Refused(reason) from reason
        self._meet(job, name)
        if text.message is not None:
            job.push_user_message(text.message)
        if text.subtask is not None:
            self.handles[text.subtask] = create_sub_task(job, id=text.subtask)

    def _value(self, value: JSON) -> Any:
        reference = as_reference(value)
        if isinstance(reference, JobReference):
            return self.jobs[reference.name]
        if reference is not None:
            world = stored_world.WORLD
            match reference.kind:
                case "owner":
                    return world.owner
                case "item":
                    return world.queue.items[reference.name]
                case "future":
                    return world.events[reference.name]
                case "queue":
                    raise Interrupted("Unsupported", "the store cannot keep the queue itself")
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return {key: self._value(item) for key, item in value.items()} if isinstance(value, dict) else value

    def _act(self, event: Event) -> None:
        try:
            self._do(event)
        except (AttributeError, RuntimeError, ValueError) as reason:
            raise Refused(reason) from reason

    def _do(self, event: Event) -> None:
        match event.action:
            case "resolve":
                stored_objects.LIVE.events.resolve(event.resolve, event.value)
            case "fail":
                stored_objects.LIVE.events.break_(event.fail, event.error)
            case "push":
                self.jobs[event.push].push_user_message(event.message)
            case "notify":
                self.jobs[event.notify].send_notification(event.message)
            case "complete":
                self._complete(event)
            case "start":
                self._start(event.start, self.scenario.jobs[event.start])
            case "crash" | "restart":
                raise Interrupted("Unsupported", f"{event.action} is not supported")
        self.loop.offer()

    def _complete(self, event: Event) -> None:
        handle = self.handles.get(event.complete) or self._find_handle(event.complete)
        handle.complete(
            result=event.result if event.said("result") else None,
            error=event.error if event.said("error") else None,
        )

    def _find_handle(self, subtask_id: str) -> Any:
        for job in self.known().values():
            handle = job.py_env.local_state.get("sub_task_handler")
            if handle is not None and handle.id == subtask_id:
                return handle
        raise Interrupted("BadInput", f"there is no subtask {subtask_id!r} when the event happens")

    # -- running ---------------------------------------------------------------------------------------------------

    def play(self) -> Message:
        """Run to the end and return the facts."""
        send.stage = self
        if self.error is None:
            asyncio.run(self._drive())
        return run_facts(self)

    async def _drive(self) -> None:
        try:
            self._schedule()
            self.settled = await self.loop.run(self.scenario.until)
        except Interrupted as end:
            self.error = {"type": end.kind, "message": end.message}
        except Refused as refusal:
            self.error = {"type": type(refusal.reason).__name__, "message": str(refusal.reason)}

    def deliver(self, body: str, media: str | None) -> None:
        """Keep what was said to the user of the current job."""
        name = self.name_of(statek.get_current_job())
        self.delivered.setdefault(name, []).append({"body": body, "media": media})
        self.witness.tell(events.Delivered, name, shown(body), None if media is None else shown(media))


class _Send:
    """Where messages to users go: the stage that plays."""

    stage: Stage | None = None


send = _Send()


def _send(body: str, media: str | None = None) -> None:
    """The user of every dialog agent: reads and stays silent. What was sent is in the trace."""
    # Up to 1.2 that is the description of a tool, so it is the same as in the reference backend.
    if send.stage is not None:
        send.stage.deliver(body, media)


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
