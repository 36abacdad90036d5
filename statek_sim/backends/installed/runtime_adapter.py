"""Adapts the real package to the driver: STATEK with its store, and a scenario's agents as STATEK agents.

A worker process that is to be killed commits the store, saves everything else that outlives the process (the
outside world, the time and the events so far) and kills itself with SIGKILL. The next process opens the store
and continues. STATEK's own state is passed on only through the store.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import dbzero
from statek.agents import DialogAgent
from statek.agents.agent import SupervisedAgent
from statek.executors import utils
from statek.prompt_config import make_system_prompt
from statek.task import create_new_job, create_sub_task

from statek_sim import trace as events
from statek_sim.backends.driver import USER, Driver, metadata_of
from statek_sim.backends.installed import stored_world
from statek_sim.backends.installed.runtime import InstalledRuntime
from statek_sim.scenario.schema import AgentText, JobText
from statek_sim.world import queue

StartJobs = Callable[[int], None]
"""A function that STATEK calls on each pass of its loop, with the number of free slots."""


Leave = Callable[[bool], NoReturn]
"""A function that ends this process and hands over to the next process.

If called with True, the next process's worker starts immediately.
"""


class InstalledSide:
    """STATEK's store and worker loop, as the driver needs them.

    In a process that resumes a run, the agents are already in the store.
    """

    def __init__(self, runtime: InstalledRuntime, *, leave: Leave) -> None:
        self._runtime = runtime
        self._leave = leave
        self._start_jobs: list[StartJobs] = []
        utils.run_jobs_loop = self._loop_begins
        self.fresh = False
        """Whether this process opened a dead worker's store and has done nothing else yet."""

    @property
    def now(self) -> float:
        """The current virtual second."""
        return self._runtime.time.now

    @property
    def world(self) -> stored_world.StoredWorld:
        """The world, with objects from the store."""
        return stored_world.WORLD

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Call `action` at virtual second `when`, then queue the jobs that became ready."""

        def act() -> None:
            action()
            self._runtime.loop.offer()

        self._runtime.time.at(when, act)

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Create an agent, unless an earlier process has already created it."""
        if role not in stored_world.AGENTS:
            stored_world.AGENTS[role] = make_agent(role, text)

    def add_loop(self, role: str) -> None:
        """Register STATEK's agentic loop, which creates a job of this agent for each item in the queue."""
        agent = stored_world.AGENTS[role]
        # As in `start_statek`.
        warmup = None if agent.warmup_def is None else agent.warmup_def.warmup_code
        loop = utils.run_agentic_loop(agent, warmup, stored_world.LIVE.queue.ready, queue_prefixes=())
        try:
            loop.send(None)
        except StopIteration:
            return
        loop.close()
        raise AssertionError("STATEK's agentic loop waits before it runs jobs")

    async def _loop_begins(self, *, start_jobs_func: StartJobs, **_: Any) -> None:
        """Replaces `run_jobs_loop`, which never returns; keeps the function that creates an agent's jobs."""
        self._start_jobs.append(start_jobs_func)

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job as an application does."""
        agent = stored_world.AGENTS[text.agent or next(iter(stored_world.AGENTS))]
        parent = self._runtime.jobs.jobs[text.parent] if text.parent is not None else None
        job = _new_job(agent, shared, parent, text.warmup)
        self._runtime.jobs.meet(job, name)
        return job

    def job(self, name: str) -> Any:
        """Return a job by name."""
        return self._runtime.jobs.jobs[name]

    def make_subtask(self, job: Any, subtask_id: str) -> Any:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker, which is this process; may be called from anywhere."""
        self._runtime.loop.die(reason)
        self._leave(False)

    def restart(self) -> None:
        """Start a new worker process, or use this process if it has done nothing since opening the store."""
        if not self.fresh:
            self._leave(True)
        self.begin_anew()

    # -- the worker process ----------------------------------------------------------------------------------------

    def begin_work(self) -> None:
        """Make the agentic loops create jobs on each pass."""
        self._runtime.loop.on_pass[:] = self._start_jobs

    def begin_anew(self) -> None:
        """Start working in place of the dead worker."""
        self.fresh = False
        self._runtime.recorder.tell(events.WorldChanged, "", "worker", "restarted")
        self.begin_work()
        self._runtime.loop.restart()


def _new_job(_agent: Any, _shared: Mapping[str, Any], _parent: Any, _warmup: str | None) -> Any:
    """Create a job.

    The parameters have unlikely names, because STATEK copies the caller's variables for warmup code.
    """
    return create_new_job(_agent, _shared, _parent, _warmup)


FILE: Final = "handover.json"
"""Name of the file, in the scenario's store folder, that is handed over to the next process."""

_KEPT: Final = "statek-sim"
"""A tag for objects that must stay in the store, which drops unreferenced objects."""


def hand_over(runtime: InstalledRuntime, driver: Driver, folder: str, *, restart: bool) -> NoReturn:
    """Save everything for the next process and die. With `restart`, the next process's worker starts immediately."""
    work, world = stored_world.LIVE, stored_world.WORLD
    kept = _kept(driver)
    for objects in kept.values():
        for stored in objects.values():
            dbzero.tags(stored).add(_KEPT)
    memory = {
        "restart": restart,
        "runtime": runtime.memory(),
        "driver": driver.memory(),
        "items": [
            [item.id, str(item.status), item.owner_id, item.error_message]
            for item in work.queue.items.values()
        ],
        "futures": work.events.saved(),
        "ledger": list(world.ledger.lines),
        "names": runtime.jobs.names,
        "owner": world.owner.id,
        **{
            kind: {name: dbzero.uuid(stored) for name, stored in objects.items()}
            for kind, objects in kept.items()
        },
    }
    Path(folder, FILE).write_text(json.dumps(memory))
    # The store commits several times a second, so it may as well have committed now.
    dbzero.commit()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("this process is dead")


def _kept(driver: Driver) -> dict[str, dict[str, Any]]:
    """Return the stored objects to which the application refers, keyed by kind and name."""
    return {
        "agents": stored_world.AGENTS,
        "handles": driver.subtasks,
        "stored_items": stored_world.STORED_ITEMS,
        "owners": stored_world.WORLD.owners,
    }


def take_over(runtime: InstalledRuntime, driver: Driver, memory: Any) -> None:
    """Continue where the previous process ended."""
    work, world = stored_world.LIVE, stored_world.WORLD
    for uuid, name in memory["names"].items():
        runtime.jobs.names[uuid], runtime.jobs.jobs[name] = name, dbzero.fetch(uuid)
    for kind, objects in _kept(driver).items():
        objects.update({name: dbzero.fetch(uuid) for name, uuid in memory[kind].items()})
    world.owner = world.owner_named(memory["owner"])
    for name, status, owner, error in memory["items"]:
        if name not in work.queue.items:
            work.queue.add(queue.WorkItem(name))
        item = work.queue.items[name]
        item.status, item.owner_id, item.error_message = queue.ItemStatus(status), owner, error
    work.events.resume(memory["futures"])
    world.ledger.lines.extend(memory["ledger"])
    runtime.remember(memory["runtime"])
    driver.remember(memory["driver"])


class UnusableTool(Exception):
    """One of the user's tools is not available in this interpreter; the message explains why."""


@dbzero.memo
class Agent(SupervisedAgent):
    """An agent for which jobs can be created; the class name is the one in the reference runtime's errors."""


def make_agent(role: str, text: AgentText) -> Any:
    """Return the agent described in a scenario; the store must be open."""
    metadata = metadata_of(text)
    own = [_tool(name) for name in text.tools]
    prompt = make_system_prompt(text.prompt) if text.prompt else None
    if text.dialog:
        agent = DialogAgent(_send, tools=own, role=role, add_answer_tool=text.answer_tool, _metadata=metadata)
        agent._system_prompt = prompt
    else:
        agent = Agent(role=role, _system_prompt=prompt, _tools=own, _metadata=metadata)
    if text.reminder is not None:
        agent.set_new_reminder(text.reminder.text, min_dialog_len=text.reminder.min_dialog_len)
    if text.warmup is not None:
        agent.update_warmup_def(text.warmup)
    return agent


def _tool(name: str) -> Callable[..., Any]:
    """Return a built-in tool by name, or the user's tool `module:attribute`; raises `UnusableTool`."""
    if ":" not in name:
        return stored_world.TOOLS[name]
    found = _attribute(name)
    if not hasattr(found, "tool_hidden") or found not in stored_world.registered_tools():
        raise UnusableTool(
            f"{name!r} is not a STATEK tool; the installed package needs tools created with statek.tool"
        )
    return found  # type: ignore[no-any-return]  # checked just above


def is_async(name: str) -> bool:
    """Return whether a tool is a coroutine function."""
    return inspect.iscoroutinefunction(inspect.unwrap(_tool(name)))


def _attribute(name: str) -> Any:
    """Import `module:attribute`; raises `UnusableTool`."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # importing runs the user's code
        raise UnusableTool(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}{_hint(module, error)}"
        ) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UnusableTool(f"module {module!r} has no {path!r}") from None
    return found


def _hint(module: str, error: Exception) -> str:
    """Return advice for a missing module, or an empty string for a module that raises an error when imported."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        if module == error.name or module.startswith(f"{error.name}."):
            return "; run this in the folder that contains it, add that folder to PYTHONPATH, or install it there"
        return f"; install {error.name} in that interpreter, which imports {module} itself"
    return ""


class _Outbox:
    """The destination of messages to users; `deliver` is set for each scenario."""

    deliver: Callable[[str, str | None], None] | None = None


outbox = _Outbox()


def _send(body: str, media: str | None = None) -> None:
    if outbox.deliver is not None:
        outbox.deliver(body, media)


_send.__doc__ = USER
