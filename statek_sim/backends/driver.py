"""A scenario's application: creates the agents and jobs, and executes the events, on any runtime.

All runtimes share one driver, so any difference between two runs of a scenario comes from the runtimes.
`reference` adapts the reference runtime, `installed.runtime_adapter` the real package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Protocol, assert_never

from statek_sim.call_hooks import CallHooks
from statek_sim.errors import BadInput, Untimely, UnusedEvents
from statek_sim.scenario.events import Event
from statek_sim.scenario.part import JobReference, WorldReference, as_reference
from statek_sim.scenario.schema import AgentText, JobText, Scenario
from statek_sim.values import JSON
from statek_sim.world.world import World

USER: Final = "The user of every dialog agent: reads and stays silent. What was sent is in the trace."
"""Docstring of the function that sends messages to users, on every runtime.

Up to 1.2, STATEK uses the docstring as a tool description.
"""


class Refused(Exception):
    """Raised if a runtime rejects an action by the scenario's application; `reason` explains why."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason

    @property
    def kind(self) -> str:
        """The name of the exception class, as STATEK users know it."""
        return type(self.reason).__name__


@contextmanager
def _refusable(*kinds: type[Exception]) -> Iterator[None]:
    """Convert exceptions of these kinds to `Refused`; used around calls made by a scenario's application."""
    try:
        yield
    except kinds as reason:
        raise Refused(reason) from reason


_USING: Final = (AttributeError, RuntimeError, ValueError)
"""Errors raised by methods of jobs and subtasks, for example for a second completion or a missing method."""
_MAKING: Final = (RuntimeError, SyntaxError, ValueError)
"""Errors raised when creating agents and jobs: invalid warmup, model name or value for the store.

Nothing is created in these cases (behaviour 7.1).
"""


def check_events(left: Iterable[Event]) -> None:
    """Raise `UnusedEvents` for the first event still waiting for a tool call that was never made."""
    for event in left:
        if event.after is not None:
            whose = f" by {event.after.job}" if event.after.job else ""
            raise UnusedEvents(
                f"the event {event.action!r} follows call {event.after.call} of "
                f"{event.after.tool!r}{whose}, which never happened: correct the tool, call or job, or remove the event"
            )


class Side(Protocol):
    """A runtime and its world, as the driver needs them. The driver decides when and in which order events happen."""

    @property
    def now(self) -> float:
        """The current virtual second."""

    @property
    def world(self) -> World:
        """The world outside the jobs: queue, external events, ledger."""

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Call `action` at virtual second `when`, or now if that has passed; then step the jobs that are ready."""

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Register an agent; raises SyntaxError or ValueError for invalid warmup."""

    def add_loop(self, role: str) -> None:
        """Start the runtime's own agentic loop, which creates a job of this agent for each item in the queue."""

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job; raises SyntaxError or ValueError for invalid warmup or model names."""

    def job(self, name: str) -> Any:
        """Return a job by name."""

    def make_subtask(self, job: Any, subtask_id: str) -> Any:
        """Make a job a subtask of its parent."""

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker process.

        With `in_call`, a tool call is in progress: the tool has done its work, but has not returned.
        """

    def restart(self) -> None:
        """Start a new worker process."""


class Driver:
    """Executes a scenario application's actions on a runtime.

    Call `prepare` first, then (in a process that resumes a run) `remember`, then `begin`. The runtime calls
    `tool_returned` after each tool call. Call `check_finished` at the end. `done` holds the names of past
    actions, which are not repeated when a run resumes.
    """

    def __init__(self, scenario: Scenario, side: Side) -> None:
        self._scenario = scenario
        self._side = side
        self._hooks: CallHooks[str] = CallHooks()
        self._events = {f"event {number}": event for number, event in enumerate(scenario.events)}
        self._due: list[str] = []
        self.acts: Callable[[], AbstractContextManager[None]] = nullcontext
        """Creates the context for each action, so that a store commits either the whole action or nothing."""
        self.done: set[str] = set()
        self.subtasks: dict[str, Any] = {}

    # -- planning ----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Register the agents, whose warmup STATEK reads before any job exists, and start the agentic loops."""
        for role, text in self._scenario.agents.items():
            with _refusable(*_MAKING):
                self._side.enter_agent(role, text)
        for role in self._scenario.loops:
            with _refusable(*_MAKING):
                self._side.add_loop(role)

    def begin(self) -> None:
        """Create the initial jobs, and schedule everything that has not happened yet."""
        started = {event.start for event in self._scenario.events if event.action == "start"}
        for name, text in self._scenario.jobs.items():
            if name not in started and f"start {name}" not in self.done:
                self._plan_job(name, text)
        for key, event in self._events.items():
            if key not in self.done and key not in self._due:
                self._plan(key, event)
        for key in self._due:
            self._soon(key)

    def _plan_job(self, name: str, text: JobText) -> None:
        def start() -> None:
            with self.acts():
                self.done.add(f"start {name}")
                self._start(name, text)

        if text.at:
            self._side.at(text.at, start)
        else:
            start()

    def _plan(self, key: str, event: Event) -> None:
        if event.after is None:
            self._side.at(event.at, lambda: self._act(key))
        else:
            self._hooks.add(key, tool=event.after.tool, call=event.after.call, job=event.after.job)

    def _soon(self, key: str) -> None:
        self._side.at(self._side.now, lambda: self._act(key))

    def tool_returned(self, job: str, tool: str) -> None:
        """Execute the events that follow this call: a crash happens inside the call, other events right after it."""
        following = [key for key in self._hooks.returned(tool, job) if key not in self.done]
        crashes = [key for key in following if self._events[key].action == "crash"]
        for key in following:
            if key not in crashes:
                self._due.append(key)
                self._soon(key)
        if crashes:
            self.done.update(crashes)
            after = self._events[crashes[0]].after
            assert after is not None, "it follows a call"
            self._side.kill(f"killed in call {after.call} of {after.tool}", in_call=True)

    def check_finished(self) -> None:
        """Raise `UnusedEvents` if an event is still waiting for a call that was never made."""
        happened = {*self.done, *self._due}
        check_events(event for key, event in self._events.items() if key not in happened)

    # -- actions -----------------------------------------------------------------------------------------------

    def _start(self, name: str, text: JobText) -> None:
        side = self._side
        shared = {key: argument(value, side.world, side.job) for key, value in text.locals.items()}
        with _refusable(*_MAKING):
            job = side.make_job(name, text, shared)
        with _refusable(*_USING):
            if text.message is not None:
                job.push_user_message(text.message)
            if text.subtask is not None:
                self.subtasks[text.subtask] = side.make_subtask(job, text.subtask)

    def _act(self, key: str) -> None:
        with self.acts():
            self.done.add(key)
            if key in self._due:
                self._due.remove(key)
            self._do(self._events[key])

    def _do(self, event: Event) -> None:
        side = self._side
        match event.action:
            case "resolve":
                with _refusable(*_USING):
                    side.world.events.resolve(event.resolve, event.value)
            case "fail":
                side.world.events.break_(event.fail, event.error)
            case "push":
                job = self._job(event.push)
                with _refusable(*_USING):
                    job.push_user_message(event.message)
            case "notify":
                job = self._job(event.notify)
                with _refusable(*_USING):
                    job.send_notification(event.message)
            case "complete":
                self._complete(event)
            case "start":
                self._start(event.start, self._scenario.jobs[event.start])
            case "crash":
                side.kill("killed", in_call=False)
            case "restart":
                side.restart()
            case "answer" | "refuse":
                raise AssertionError(
                    f"{event.action!r} is for the agent engine; the file's validation rejects it"
                )
            case _:
                assert_never(event.action)

    def _job(self, name: str) -> Any:
        try:
            return self._side.job(name)
        except BadInput as error:
            raise self._untimely(str(error)) from None

    def _untimely(self, reason: str) -> Untimely:
        return Untimely(f"{self._scenario.place}: {reason}")

    def _complete(self, event: Event) -> None:
        subtask = self.subtasks.get(event.complete)
        if subtask is None:
            raise self._untimely(f"there is no subtask {event.complete!r} when the event happens")
        result = event.result if event.said("result") else None
        error = event.error if event.said("error") else None
        with _refusable(*_USING):
            subtask.complete(result=result, error=error)

    # -- from one process to the next --------------------------------------------------------------------------

    def memory(self) -> JSON:
        """Return the state for `remember` in the next process."""
        return {"done": [*sorted(self.done)], "due": [*self._due], "counts": self._hooks.counts()}

    def remember(self, memory: Any) -> None:
        """Continue from the state returned by `memory` in the previous process; call it before `begin`."""
        self.done.update(memory["done"])
        self._due = list(memory["due"])
        self._hooks.count_on((tool, job, count) for tool, job, count in memory["counts"])


def metadata_of(text: AgentText) -> dict[str, str]:
    """Return the metadata for an agent's prompt, including its MODEL."""
    metadata = {"MODEL": text.model, **{key: str(value) for key, value in text.metadata.items()}}
    if text.chat_style is not None and text.dialog:
        metadata["CHAT_STYLE"] = text.chat_style
    if text.tools_scope is not None:
        metadata["LLM_TOOLS_SCOPE"] = text.tools_scope
    if text.temperature is not None:
        metadata["TEMPERATURE"] = str(text.temperature)
    return metadata


def style_of_all(scenario: Scenario) -> str | None:
    """Return the chat style shared by all agents except dialog agents, or None if they differ.

    STATEK gets a shared style as a setting.
    """
    styles = {text.chat_style for text in scenario.agents.values() if not text.dialog}
    return styles.pop() if len(styles) == 1 else None


def style_of_definitions(text: AgentText, of_all: str | None) -> str | None:
    """Return the chat style for an agent's job definitions, or None if they need none.

    Only dialog agents read a style from their metadata, so this is the only way to give a plain agent a style
    that differs from the setting `of_all`. Jobs share a definition (`find_existing_job_def`) only if the
    definition has no style of its own.
    """
    return None if text.dialog or text.chat_style == of_all else text.chat_style


def world_object(world: World, reference: WorldReference) -> object:
    """Return the world object named by a reference."""
    match reference.kind:
        case "owner":
            return world.owner_named(reference.name)
        case "queue":
            return world.queue_value
        case "item":
            return world.queue.items[reference.name]
        case "future":
            return world.events[reference.name]
        case _:
            assert_never(reference.kind)


def argument(value: JSON, world: World, job: Callable[[str], Any]) -> Any:
    """Return the object for a value in `locals`: references become objects, containers are copied."""
    reference = as_reference(value)
    if isinstance(reference, JobReference):
        return job(reference.name)
    if reference is not None:
        return world_object(world, reference)
    if isinstance(value, list):
        return [argument(item, world, job) for item in value]
    if isinstance(value, dict):
        return {key: argument(item, world, job) for key, item in value.items()}
    return value
