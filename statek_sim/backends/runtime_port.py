"""What a runtime can do for the application of a scenario: the seam between the driver and each runtime.

`reference_runtime` is the reference runtime, `installed.runtime_adapter` the real package. A side knows neither events
nor their order: what happens when is the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from statek_sim.scenario.schema import AgentText, JobText


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

    def __getitem__(self, name: str) -> object:
        """Return the event of this name, as a job's variable has it."""

    def resolve(self, name: str, value: Any) -> object:
        """Let the event of this name happen."""

    def break_(self, name: str, message: str) -> object:
        """Make the event's condition raise."""


class DrivenQueue(Protocol):
    """The work queue."""

    @property
    def items(self) -> Mapping[str, object]:
        """Its items by id."""


class DrivenWorld(Protocol):
    """The world outside the jobs, in the objects of one runtime."""

    @property
    def events(self) -> DrivenEvents:
        """The external events."""

    @property
    def queue(self) -> DrivenQueue:
        """The work queue as tools use it."""

    @property
    def queue_value(self) -> object:
        """The work queue as a job's variable has it."""

    def owner_named(self, name: str) -> object:
        """Return the owner of this id, the queue's own for an empty one; the same object each time."""


class Side(Protocol):
    """One runtime with its world, as an application has them in its hands."""

    @property
    def now(self) -> float:
        """The virtual second."""

    @property
    def world(self) -> DrivenWorld:
        """The world outside the jobs."""

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`, at once if that has passed; what it made able to run is seen."""

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Have this agent; SyntaxError or ValueError for warmup that cannot be read."""

    def add_loop(self, role: str) -> None:
        """Have the runtime's own loop start jobs of this agent for the items of the queue."""

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Any:
        """Create a job; SyntaxError or ValueError for warmup or a model that cannot be read."""

    def job(self, name: str) -> Any:
        """Return a job by its name: a `DrivenJob`."""

    def make_subtask(self, job: Any, subtask_id: str) -> DrivenSubtask:
        """Make a job a subtask of its parent."""

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker process; with `in_call` from within a tool that has done its work and not returned."""

    def restart(self) -> None:
        """Start a new worker process."""
