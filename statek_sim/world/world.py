"""A world: the work queue, external events that jobs wait for, and a ledger of side effects.

The world's tools use `ToolApi`, so they run on the reference runtime and on the real package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from statek_sim.errors import BadInput
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.stored.storable_types import stored
from statek_sim.values import unchanged
from statek_sim.world.queue import QueueOwner, WorkItem, WorkQueue


class Ledger:
    """An append-only list of lines; no job can remove a line."""

    def __init__(
        self,
        *,
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._changed = changed or (lambda _subject, _what: None)
        self._before = before or (lambda: None)

    def write(self, line: object) -> None:
        """Record a side effect: strings, numbers and None unchanged, anything else as text."""
        self._before()
        written: Any = line if line is None or isinstance(line, str | int | float) else str(line)
        self.lines.append(written)
        self._changed("ledger", written)


class World:
    """Everything outside the jobs. `changed(subject, what)` is called after every change, and `before` in advance.

    If `before` raises an error, the change does not happen: a process that has died changes nothing.
    """

    def __init__(
        self,
        *,
        owner: str = "worker-1",
        items: Iterable[WorkItem] = (),
        futures: Iterable[str] = (),
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.owner = QueueOwner(owner)
        self.owners = {owner: self.owner}
        """All owners of items so far, keyed by id."""
        self.queue = WorkQueue(items, changed=changed, before=before)
        self.events = ExternalEvents(futures, changed=changed, before=before)
        self.ledger = Ledger(changed=changed, before=before)

    def owner_named(self, name: str) -> QueueOwner:
        """Return the owner with this id, always the same object; for an empty id, the queue's own owner."""
        if not name:
            # Even if agent code changed its id.
            return self.owner
        if name not in self.owners:
            self.owners[name] = self.new_owner(name)
        return self.owners[name]

    def new_owner(self, name: str) -> QueueOwner:
        """Return a new owner with this id."""
        return QueueOwner(name)

    @property
    def queue_value(self) -> object:
        """The queue as a value that a job's variables can hold."""
        return self.queue

    def leaked_claims(self) -> list[str]:
        """Return the ids of items that are still claimed."""
        return [item.id for item in self.queue.claimed()]


class ExternalEvent:
    """An event outside the jobs, which is either resolved once with a value or broken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.signal = Signal()
        self.resolved = False
        self.value: object = None
        self.broken: str | None = None

    def is_ready(self) -> bool:
        """Return whether the event was resolved; raises RuntimeError if the event is broken, as a condition may."""
        if self.broken is not None:
            raise RuntimeError(self.broken)
        return self.resolved

    def __llm_repr__(self) -> str:
        """Return the text that agents see: an application's event is displayed by its name."""
        return f'ExternalEvent(name="{self.name}")'


class ExternalEvents:
    """A world's external events, keyed by name."""

    def __init__(
        self,
        names: Iterable[str] = (),
        *,
        changed: Callable[[str, str], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self._events = {name: ExternalEvent(name) for name in names}
        self._changed = changed or (lambda _name, _what: None)
        self._before = before or (lambda: None)

    def __getitem__(self, name: str) -> ExternalEvent:
        try:
            return self._events[name]
        except KeyError:
            known = ", ".join(self._events) or "none"
            raise BadInput(f"unknown external event {name!r}; declared: {known}") from None

    def all(self) -> list[ExternalEvent]:
        """Return all external events."""
        return list(self._events.values())

    def saved(self) -> list[tuple[str, bool, object, str | None]]:
        """Return each event's name, state, value and error, for `resume` in another process."""
        return [(event.name, event.resolved, event.value, event.broken) for event in self.all()]

    def resume(self, saved: Iterable[tuple[str, bool, object, str | None]]) -> None:
        """Restore every event from `saved` without notifying waiting jobs."""
        for name, resolved, value, broken in saved:
            event = self[name]
            event.resolved, event.value, event.broken = resolved, value, broken

    def resolve(self, name: str, value: object) -> None:
        """Resolve the external event `name` with `value`."""
        event = self[name]
        self._before()
        event.resolved, event.value = True, value
        self._changed(name, "resolved")
        event.signal.fire()

    def break_(self, name: str, message: str) -> None:
        """Break the external event `name`: from now on, checking its condition raises an error."""
        event = self[name]
        self._before()
        event.broken = message
        self._changed(name, f"broken: {message}")
        event.signal.fire()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApi:
    """The decorators and functions of one runtime. `agents` maps roles to agents, for delegation.

    `stored` makes a class whose objects the runtime can store as part of a job. `kept` returns the stored form of an
    attribute's value, if the class does not convert values itself.
    """

    tool: Callable[..., Callable[..., Any]]
    subtask: Callable[..., Callable[..., Any]]
    error_handler: Callable[..., Callable[..., Any]]
    temporal: Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]
    future: type
    future_error: type[Exception]
    get_current_job: Callable[[], Any]
    create_new_job: Callable[..., Any]
    complete_sub_task: Callable[..., None]
    delegate_task: Callable[..., Any]
    any_future: Callable[..., Any]
    all_future: Callable[..., Any]
    get_llm_harness: Callable[[], Any]
    agents: Mapping[str, Any]
    stored: Callable[[type], type] = stored
    kept: Callable[[Any], Any] = unchanged
