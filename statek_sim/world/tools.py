"""The tools of the built-in world, by the names that scenarios use.

They are written against a `ToolApi`, so that the same tools run on this runtime and on the real package.
"""

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether
# a string argument names a variable.
import asyncio
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, overload

from statek_sim.world.events import ExternalEvent
from statek_sim.world.queue import ItemStatus, QueueOwner, WorkItem
from statek_sim.world.world import World

F = TypeVar("F", bound=Callable[..., Any])


class Decorator(Protocol):
    """`@decorator` without options."""

    def __call__(self, function: F, /) -> Any:
        """Return the decorated function."""


class ToolDecorator(Protocol):
    """`@decorator` and `@decorator(option=...)`."""

    @overload
    def __call__(self, f: F, /) -> F: ...
    @overload
    def __call__(
        self, f: None = None, /, *, error_handler: Callable[..., object] | None = None, hidden: bool = False
    ) -> Callable[[F], F]: ...


class SubtaskDecorator(Protocol):
    """`@subtask` without options."""

    def __call__(self, f: F, /) -> F:
        """Return the decorated factory."""


class TemporalDecorator(Protocol):
    """`@temporal(complement=..., condition=...)`."""

    def __call__(self, *, complement: Callable[..., Any], condition: Callable[..., bool]) -> Callable[[F], F]:
        """Return the decorator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApi:
    """The decorators and functions of one runtime. `agents` maps roles to its agents, for delegation."""

    tool: ToolDecorator
    subtask: SubtaskDecorator
    error_handler: Decorator
    temporal: TemporalDecorator
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


class WorldTools(Mapping[str, Callable[..., Any]]):
    """Every built-in tool by name, and the runtime's own `extra` ones.

    A group of tools is made when one of them is first asked for.
    """

    def __init__(self, world: World, api: ToolApi, *, extra: Iterable[Callable[..., Any]] = ()) -> None:
        self._world = world
        self._api = api
        self._made: dict[str, Callable[..., Any]] = {function.__name__: function for function in extra}
        self._names = (*self._made, *_GROUP_OF)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._made:
            made = _GROUP_OF[name](self._world, self._api)
            self._made.update({function.__name__: function for function in made})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _claiming_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    queue = world.queue

    @api.error_handler
    def _mark_item_error(context: Any, error: Any = None) -> None:
        owner, item = context
        if item.held_by(owner):
            queue.mark_error(item, str(error) if error else "job terminated")

    @api.error_handler
    def _release_item(context: Any, error: Any = None) -> None:
        owner, item = context
        if item.held_by(owner):
            queue.release(item)

    @api.error_handler
    def _release_without_guard(context: Any, error: Any = None) -> None:
        _, item = context
        queue.release(item)

    @api.error_handler
    def _failing_cleanup(context: Any, error: Any = None) -> None:
        raise RuntimeError("cleanup failed")

    def claim(owner: QueueOwner) -> tuple[QueueOwner, WorkItem] | None:
        item = queue.claim_next(owner)
        return None if item is None else (owner, item)

    @api.tool(error_handler=_mark_item_error)
    def fetch_next_item(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim and return the next work item for this worker."""
        return claim(owner)

    @api.tool(error_handler=_release_item)
    def claim_or_release(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; it is given back if the job dies."""
        return claim(owner)

    @api.tool(error_handler=_release_without_guard)
    def claim_unguarded(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; its cleanup does not check who owns it."""
        return claim(owner)

    @api.tool(error_handler=_failing_cleanup)
    def claim_with_failing_cleanup(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; its cleanup raises."""
        return claim(owner)

    @api.tool
    def claim_without_cleanup(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; nothing cleans up after it."""
        return claim(owner)

    @api.tool
    def fetch_status(owner: QueueOwner, **kwargs: Any) -> dict[str, Any]:
        """Return the next item for this worker, or an empty status."""
        item = queue.claim_next(owner)
        return (
            {"status": "empty"} if item is None else {"status": "claimed", "owner": owner.id, "item": item.id}
        )

    return [
        fetch_next_item,
        claim_or_release,
        claim_unguarded,
        claim_with_failing_cleanup,
        claim_without_cleanup,
        fetch_status,
        _future_claim(world, api, _mark_item_error),
    ]


def _future_claim(world: World, api: ToolApi, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool whose claim exists only once its future resolves (003, Future-Returning Claims)."""

    class NextItem(api.future):  # type: ignore[name-defined, misc]  # the runtime's own future class
        def __init__(self, owner: QueueOwner) -> None:
            super().__init__(deps=world.queue, state_num=0)
            self.owner = owner
            self.claimed: tuple[QueueOwner, WorkItem] | None = None

    def is_ready(future: Any) -> bool:
        return future.claimed is not None or world.queue.ready() > 0

    def take(future: Any) -> tuple[QueueOwner, WorkItem]:
        if future.claimed is None:
            item = world.queue.claim_next(future.owner)
            if item is None:
                raise api.future_error(future)
            future.claimed = (future.owner, item)
        return future.claimed  # type: ignore[no-any-return]  # set just above

    @api.temporal(complement=take, condition=is_ready)
    @api.tool(error_handler=handler)
    def wait_for_next_item(owner: QueueOwner, **kwargs: Any) -> Any:
        """Return a future that resolves to (owner, item) when work is available."""
        return NextItem(owner)

    return wait_for_next_item


def _item_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    @api.tool
    def process_item(item: WorkItem, **kwargs: Any) -> str:
        """Process a claimed work item."""
        world.queue.complete(item)
        return f"processed {item.id}"

    @api.tool
    def add_item(id: str, **kwargs: Any) -> None:  # noqa: A002  # what a caller would write
        """Put a new work item into the queue."""
        world.queue.add(WorkItem(id))

    @api.tool
    def item_status(id: str, **kwargs: Any) -> str:  # noqa: A002  # what a caller would write
        """Return the status of a work item."""
        return str(world.queue.items[id].status)

    return [process_item, add_item, item_status]


def _waiting_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    class Happening(api.future):  # type: ignore[name-defined, misc]  # the runtime's own future class
        def __init__(self, event: ExternalEvent) -> None:
            super().__init__(deps=event, state_num=0)
            self.event = event

    def is_ready(future: Any) -> bool:
        return bool(future.event.is_ready())

    def value(future: Any) -> Any:
        if not future.event.is_ready():
            raise api.future_error(future)
        return future.event.value

    def pair(future: Any) -> tuple[Any, Any]:
        return value(future)  # type: ignore[no-any-return]  # the scenario resolves it with two values

    @api.temporal(complement=value, condition=is_ready)
    @api.tool
    def wait_for(name: str, **kwargs: Any) -> Any:
        """Wait for an external event and return its value."""
        return Happening(world.events[name])

    @api.temporal(complement=pair, condition=is_ready)
    @api.tool
    def wait_for_pair(name: str, **kwargs: Any) -> Any:
        """Wait for an external event that brings two values."""
        return Happening(world.events[name])

    def one(name: str) -> Any:
        future = Happening(world.events[name])
        future.set_complement_functions(value, is_ready)
        return future

    @api.tool
    def wait_for_any(*names: str, **kwargs: Any) -> Any:
        """Wait for the first of several external events and return its value."""
        return api.any_future(*map(one, names))

    @api.tool
    def wait_for_all(*names: str, **kwargs: Any) -> Any:
        """Wait for several external events and return their values."""
        return api.all_future(*map(one, names))

    @api.tool
    def is_waiting(future: api.future, **kwargs: Any) -> bool:  # type: ignore[name-defined]
        """Tell whether a future is not ready yet, without waiting for it."""
        return not future.check_condition()

    return [wait_for, wait_for_pair, wait_for_any, wait_for_all, is_waiting]


def _plain_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    @api.tool
    def note(text: str, **kwargs: Any) -> None:
        """Write a line into the ledger of side effects."""
        world.ledger.write(text)

    @api.tool
    def echo(value: Any, **kwargs: Any) -> Any:
        """Return the value."""
        return value

    @api.tool
    def say(text: str, **kwargs: Any) -> None:
        """Print the text."""
        print(text)

    @api.tool
    def fail(message: str, **kwargs: Any) -> None:
        """Fail with a RuntimeError."""
        raise RuntimeError(message)

    @api.tool
    def note_and_refuse(text: str, **kwargs: Any) -> None:
        """Write a line into the ledger, then fail with a ValueError."""
        world.ledger.write(text)
        raise ValueError("refused")

    @api.tool
    async def slow_echo(text: str, seconds: float = 1.0, **kwargs: Any) -> str:
        """Print the text, wait, and return the text."""
        print(f"enter {text}")
        await asyncio.sleep(seconds)
        print(f"leave {text}")
        return text

    @api.tool
    def read_clock(**kwargs: Any) -> str:
        """Return the current time as ISO text."""
        return datetime.datetime.now().isoformat(timespec="seconds")

    @api.tool(hidden=True)
    def reset_everything(**kwargs: Any) -> str:
        """Reset the world; not for models."""
        world.ledger.write("reset")
        return "reset"

    @api.tool
    def read_records(count: int = 10, **kwargs: Any) -> list[dict[str, Any]]:
        """Return a table of numbers, as reporting tools do."""
        return [{"id": n, "amount": n * 17 % 1000, "rate": (n * 7 % 100) / 100} for n in range(count)]

    return [note, echo, say, fail, note_and_refuse, slow_echo, read_clock, reset_everything, read_records]


def _framework_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    def undecorated(context: Any, error: Any = None) -> None:
        """Lack the decorator."""

    @api.error_handler
    def public_name(context: Any, error: Any = None) -> None:
        """Lack the underscore."""

    @api.error_handler
    def _one_parameter(context: Any) -> None:
        """Lack the error."""

    @api.error_handler
    def _error_required(context: Any, error: Any) -> None:
        """Lack the default."""

    @api.error_handler
    def _good(context: Any, error: Any = None) -> None:
        """Follow the protocol."""

    candidates = {
        "undecorated": undecorated,
        "public name": public_name,
        "one parameter": _one_parameter,
        "error required": _error_required,
        "good": _good,
    }

    @api.tool
    def make_tool_with_handler(kind: str, **kwargs: Any) -> str:
        """Declare a tool whose error handler is of this kind; tell whether the framework took it."""

        def claim(**kwargs: Any) -> None:
            """Claim nothing."""

        try:
            api.tool(error_handler=candidates[kind])(claim)
        except TypeError:
            return "refused"
        return "accepted"

    @api.tool
    def harness_limit(name: str, **kwargs: Any) -> Any:
        """Return a limit of the process's harness."""
        return getattr(api.get_llm_harness(), name)

    return [make_tool_with_handler, harness_limit]


def _delegation_tools(_: World, api: ToolApi) -> list[Callable[..., Any]]:
    @api.subtask
    def start_subtask(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent."""
        return api.create_new_job(api.agents[role], shared_vars={}, parent_job=api.get_current_job())

    @api.tool
    def finish_subtask(result: Any = None, error: str | None = None, **kwargs: Any) -> None:
        """Report the outcome of this job's task to whoever delegated it."""
        api.complete_sub_task(result=result, error=error)

    @api.tool
    def delegate(role: str, **kwargs: Any) -> Any:
        """Hand a task to another agent and return a future of its outcome."""
        return api.delegate_task(api.agents[role], parent_job=api.get_current_job())

    return [start_subtask, finish_subtask, delegate]


_GROUPS: Final = {
    _claiming_tools: (
        "fetch_next_item",
        "claim_or_release",
        "claim_unguarded",
        "claim_with_failing_cleanup",
        "claim_without_cleanup",
        "fetch_status",
        "wait_for_next_item",
    ),
    _item_tools: ("process_item", "add_item", "item_status"),
    _waiting_tools: ("wait_for", "wait_for_pair", "wait_for_any", "wait_for_all", "is_waiting"),
    _plain_tools: (
        "note",
        "echo",
        "say",
        "fail",
        "note_and_refuse",
        "slow_echo",
        "read_clock",
        "reset_everything",
        "read_records",
    ),
    _framework_tools: ("make_tool_with_handler", "harness_limit"),
    _delegation_tools: ("start_subtask", "finish_subtask", "delegate"),
}
_GROUP_OF: Final = {name: group for group, names in _GROUPS.items() for name in names}


def ready_items(world: World) -> int:
    """Return how many items wait in the queue: the queue size of an agent loop."""
    return sum(item.status is ItemStatus.READY for item in world.queue.items.values())
