"""What the application of a scenario does, on any runtime: it makes jobs, and lets its events happen.

One driver for every runtime, so that a difference between two runs of a scenario is the runtimes' and not the drivers'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, assert_never

from statek_sim.call_hooks import CallHooks
from statek_sim.errors import BadInput, UnusedEvents
from statek_sim.scenario.external_event import Event
from statek_sim.scenario.references import JobReference, WorldReference, as_reference
from statek_sim.scenario.schema import JobText, Scenario
from statek_sim.values import JSON


class DrivenJob(Protocol):
    """A job, as far as an application uses it here."""

    def push_user_message(self, message: str) -> object:
        """Give the job a user message."""

    def send_notification(self, message: str) -> object:
        """Give the job a notification; in some versions there is no such method."""


class DrivenSubtask(Protocol):
    """The handle of a subtask."""

    def complete(self, result: Any = None, error: str | None = None) -> object:
        """Record its outcome."""


class DrivenEvents(Protocol):
    """What jobs wait for outside."""

    def resolve(self, name: str, value: Any) -> object:
        """Let the event of this name happen."""

    def break_(self, name: str, message: str) -> object:
        """Make the event's condition raise."""


class Stage(Protocol):
    """One runtime with its world, as an application has them in its hands."""

    @property
    def now(self) -> float:
        """The virtual second."""

    @property
    def events(self) -> DrivenEvents:
        """The external events of the world."""

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, at once if that has passed."""

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job; SyntaxError or ValueError for warmup or a model that cannot be read."""

    def job(self, name: str) -> Any:
        """Return a job by its name: a `DrivenJob`."""

    def thing(self, reference: WorldReference) -> object:
        """Return what a reference to the world stands for."""

    def make_subtask(self, job: Any, subtask_id: str) -> DrivenSubtask:
        """Make a job a subtask of its parent."""

    def find_subtask(self, subtask_id: str) -> DrivenSubtask | None:
        """Return the subtask of this id that a tool made, None if there is none."""

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker process; with `in_call` from within a tool that has done its work and not returned."""

    def restart(self) -> None:
        """Start a new worker process."""


class Refused(Exception):
    """The runtime refused what the scenario's application did."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextmanager
def _refusable() -> Iterator[None]:
    """Tell what the runtime refuses, a second completion or a missing method, from errors of our own.

    Only what the application itself calls belongs in here: an error of the stage's is to keep its traceback.
    """
    try:
        yield
    except (AttributeError, RuntimeError, ValueError) as reason:
        raise Refused(reason) from reason


def check_events(left: Iterable[Event]) -> None:
    """Raise `UnusedEvents` for the first of the events `left` at the end of a run that follows a tool's call."""
    for event in left:
        if event.after is not None:
            whose = f" by {event.after.job}" if event.after.job else ""
            raise UnusedEvents(
                f"the event {event.action!r} follows call {event.after.call} of {event.after.tool!r}{whose}, "
                "which never came: correct tool, call or job, or take the event out"
            )


def style_of_all(scenario: Scenario) -> str | None:
    """Return the chat style that every agent but dialog agents has, which STATEK then gets as its setting.

    Without one, an application gives each job's definition its style when the job is made: only dialog agents read
    theirs from their metadata. A definition that was given a style is no other job's (`find_existing_job_def`).
    """
    styles = {text.chat_style for text in scenario.agents.values() if not text.dialog}
    return styles.pop() if len(styles) == 1 else None


class Driver:
    """Plays the application of one scenario on a stage. `done` names what has happened, for a process that goes on."""

    def __init__(self, scenario: Scenario, stage: Stage) -> None:
        self._scenario = scenario
        self._stage = stage
        self._hooks: CallHooks[str] = CallHooks()
        self._events = {f"event {number}": event for number, event in enumerate(scenario.events)}
        self._due: list[str] = []
        self.acts: Callable[[], AbstractContextManager[None]] = nullcontext
        """What an act of the application happens in: a store keeps all of it or nothing."""
        self.done: set[str] = set()
        self.subtasks: dict[str, DrivenSubtask] = {}

    # -- planning ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Create the jobs that are there from the beginning, and plan everything that has not happened yet."""
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
            self._stage.at(text.at, start)
        else:
            start()

    def _plan(self, key: str, event: Event) -> None:
        if event.after is None:
            self._stage.at(event.at, lambda: self._act(key))
        else:
            self._hooks.add(key, tool=event.after.tool, call=event.after.call, job=event.after.job)

    def _soon(self, key: str) -> None:
        self._stage.at(self._stage.now, lambda: self._act(key))

    def tool_returned(self, job: str, tool: str) -> None:
        """Let happen what follows this call: a crash within it, everything else right after it, as written."""
        following = [key for key in self._hooks.returned(tool, job) if key not in self.done]
        crashes = [key for key in following if self._events[key].action == "crash"]
        for key in following:
            if key not in crashes:
                self._due.append(key)
                self._soon(key)
        if crashes:
            self.done.update(crashes)
            asked = self._events[crashes[0]].after
            assert asked is not None, "it follows a call"
            self._stage.kill(f"killed in call {asked.call} of {asked.tool}", in_call=True)

    def check_finished(self) -> None:
        """Raise `UnusedEvents` when an event follows a call that did not come."""
        happened = {*self.done, *self._due}
        check_events(event for key, event in self._events.items() if key not in happened)

    # -- what happens ------------------------------------------------------------------------------------------

    def _start(self, name: str, text: JobText) -> None:
        shared = {key: self._value(value) for key, value in text.locals.items()}
        try:
            job = self._stage.make_job(name, text, shared)
        except (RuntimeError, SyntaxError, ValueError) as reason:
            # Warmup or a model's name that cannot be read, or what the store refuses: no job exists (behaviour 7.1).
            raise Refused(reason) from reason
        with _refusable():
            if text.message is not None:
                job.push_user_message(text.message)
            if text.subtask is not None:
                self.subtasks[text.subtask] = self._stage.make_subtask(job, text.subtask)

    def _value(self, value: JSON) -> Any:
        """Return what a job's local stands for."""
        reference = as_reference(value)
        if isinstance(reference, JobReference):
            return self._stage.job(reference.name)
        if reference is not None:
            return self._stage.thing(reference)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return {key: self._value(item) for key, item in value.items()} if isinstance(value, dict) else value

    def _act(self, key: str) -> None:
        with self.acts():
            self.done.add(key)
            if key in self._due:
                self._due.remove(key)
            self._do(self._events[key])

    def _do(self, event: Event) -> None:
        stage = self._stage
        match event.action:
            case "resolve":
                with _refusable():
                    stage.events.resolve(event.resolve, event.value)
            case "fail":
                stage.events.break_(event.fail, event.error)
            case "push":
                job = stage.job(event.push)
                with _refusable():
                    job.push_user_message(event.message)
            case "notify":
                job = stage.job(event.notify)
                with _refusable():
                    job.send_notification(event.message)
            case "complete":
                self._complete(event)
            case "start":
                self._start(event.start, self._scenario.jobs[event.start])
            case "crash":
                stage.kill("killed", in_call=False)
            case "restart":
                stage.restart()
            case "answer" | "refuse":
                raise AssertionError(f"{event.action!r} is for engine agent, which the file's check said")
            case _:
                assert_never(event.action)

    def _complete(self, event: Event) -> None:
        subtask = self.subtasks.get(event.complete) or self._stage.find_subtask(event.complete)
        if subtask is None:
            raise BadInput(
                f"{self._scenario.path}:{self._scenario.line}: scenario {self._scenario.id!r}: "
                f"there is no subtask {event.complete!r} when the event happens"
            )
        result = event.result if event.said("result") else None
        error = event.error if event.said("error") else None
        with _refusable():
            subtask.complete(result=result, error=error)

    # -- from one process to the next --------------------------------------------------------------------------

    def memory(self) -> JSON:
        """Return what the driver of the next process must know of this one."""
        return {"done": [*sorted(self.done)], "due": [*self._due], "counts": self._hooks.counts()}

    def remember(self, memory: Any) -> None:
        """Go on with the `memory` of the process before, before `begin`."""
        self.done.update(memory["done"])
        self._due = list(memory["due"])
        self._hooks.count_on((tool, job, count) for tool, job, count in memory["counts"])
