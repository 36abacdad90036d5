"""STATEK's push queue: messages for jobs and events for agents, delivered on each pass of the worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from statek_sim.errors import StatekSimError
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.task import create_new_job
from statek_sim.shim.agents import SupervisedAgent
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.memo import memo
from statek_sim.shim.queries import fetch, find, get_prefix_of, uuid
from statek_sim.shim.store import current_store, is_current, set_prefix


@memo
class FQ_Item:  # noqa: N801  # STATEK's name
    """A queued message or event."""

    def __init__(self, **members: Any) -> None:
        for name, value in members.items():
            setattr(self, name, value)


@memo(singleton=True)
class StatekPushQueue:
    """A queue of messages for jobs, and a queue of events for each agent."""

    def __init__(self, prefix: str | None = None) -> None:
        set_prefix(self, prefix)
        self.__job_console_queue: list[Any] = []
        self.__agent_queues: dict[str, list[Any]] = {}

    def is_empty(self) -> bool:
        """Return whether the queue of messages for jobs is empty."""
        return not self.__job_console_queue

    def push_to_job_console(self, job_uuid: str, message: Any) -> None:
        """Queue a message for a job."""
        self.__job_console_queue.append(FQ_Item(job_uuid=job_uuid, message=message))

    def push_to_agent_queue(self, agent: SupervisedAgent, event: Any) -> None:
        """Queue an event for an agent."""
        queues, key = self.__agent_queues, uuid(agent)
        if key not in queues:
            queues[key] = []
        queues[key].append(FQ_Item(event=event))

    def has_agent_events(self, agent: SupervisedAgent) -> bool:
        """Return whether events are queued for an agent."""
        return bool(self.__agent_queues.get(uuid(agent)))

    def has_job(self, job_uuid: str, max_scan: int = 100) -> bool | None:
        """Return whether a message is queued for a job, or None if the first `max_scan` messages don't tell."""
        for scanned, item in enumerate(self.__job_console_queue):
            if scanned >= max_scan:
                return None
            if item.job_uuid == job_uuid:
                return True
        return False

    def pop_from_job_console(self, count: int, prefix: str | int | None = None) -> list[tuple[str, Any]]:
        """Remove up to `count` messages, oldest first, and return them with their jobs' ids.

        With `prefix`, take only messages for jobs in that prefix; an id without an object raises RuntimeError.
        """
        queue = self.__job_console_queue
        chosen = [item for item in queue if _is_in(item.job_uuid, prefix)]
        popped = {uuid(item): (item.job_uuid, item.message) for item in chosen[: max(count, 0)]}
        self.__job_console_queue = [item for item in queue if uuid(item) not in popped]
        return [*popped.values()]

    def pop_from_agent_queue(self, agent: SupervisedAgent, count: int) -> list[Any]:
        """Remove up to `count` events for an agent, oldest first, and return them."""
        if not self.has_agent_events(agent):
            return []
        queue, count = self.__agent_queues[uuid(agent)], max(count, 0)
        self.__agent_queues[uuid(agent)] = queue[count:]
        return [item.event for item in queue[:count]]


def _is_in(job_uuid: str, prefix: str | int | None) -> bool:
    try:
        return prefix is None or prefix in get_prefix_of(job_uuid)
    except TypeError as error:
        raise RuntimeError(f"{error}\n") from None


def _queues(prefixes: Iterable[str | int]) -> list[StatekPushQueue]:
    """Return the test's queue once for each of `prefixes` that is the test's."""
    queue = current_store().singletons.get(StatekPushQueue)
    return [queue for prefix in prefixes if queue is not None and is_current(prefix)]


def process_push_notifications(
    step_size: int = 100,
    max_count: int = 500,
    *,
    queue_prefixes: Sequence[str | int],
    job_prefix: str | int | None = None,
) -> None:
    """Deliver queued messages as user messages. As in STATEK, a message that cannot be delivered is lost."""
    processed = 0
    for queue in _queues(queue_prefixes):
        while processed < max_count and not queue.is_empty():
            items = queue.pop_from_job_console(min(step_size, max_count - processed), job_prefix)
            if not items:
                break
            processed += len(items)
            for job_uuid, message in items:
                try:
                    fetch(job_uuid).push_user_message(message)
                except (StatekSimError, NotCovered):
                    raise
                except Exception:  # noqa: BLE001, S112  # as in STATEK
                    continue


def process_agent_events(
    agents: Iterable[SupervisedAgent] | None = None,
    max_count: int = 100,
    *,
    queue_prefixes: Sequence[str | int],
) -> None:
    """Create a job for each queued event, with the event in the only variable that the agent's warmup code reads.

    Raises ValueError if an agent with events has warmup code that doesn't read exactly one variable.
    """
    queues = _queues(queue_prefixes) if max_count > 0 else []
    names: dict[SupervisedAgent, str] = {}
    for agent in find(SupervisedAgent) if agents is None else agents:
        if any(queue.has_agent_events(agent) for queue in queues):
            if len(agent.referenced_locals) != 1:
                raise ValueError(
                    f"Agent '{agent.role}' warmup definition must reference exactly one external local, "
                    f"got {agent.referenced_locals!r}"
                )
            (names[agent],) = agent.referenced_locals
    for queue in queues:
        for agent, name in names.items():
            for event in queue.pop_from_agent_queue(agent, max_count):
                max_count -= 1
                job: Any = create_new_job(agent, {name: event})
                if current_runtime().profile.latest_input_is_bound:
                    job.bind_critical_error_context(event)


def serve_queues(prefixes: Iterable[str | int]) -> None:
    """Deliver messages and events from now on, if the test's prefix is among `prefixes`."""
    if any(map(is_current, prefixes)):
        current_runtime().before_loops(_deliver)


def _deliver(capacity: int) -> None:
    prefix = current_store().prefix.name
    process_push_notifications(queue_prefixes=[prefix])
    process_agent_events(max_count=capacity, queue_prefixes=[prefix])
