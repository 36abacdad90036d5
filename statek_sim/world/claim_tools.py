"""Tools that claim items from the work queue, with different kinds of cleanup, or wait for external events.

See `statek_sim.world.queue` for the rules on claims. Models see this module's name in a future's text. Source: "Error
Handling".
"""

from collections.abc import Callable
from typing import Any

from statek_sim.runtime.state.access import IN_METHOD, access
from statek_sim.world.queue import QueueOwner, WorkItem, WorkQueue
from statek_sim.world.world import ExternalEvent, ToolApi, World

# No postponed annotations here: STATEK reads the hints of tools as objects, not as text, when it decides whether a
# string argument names a variable.


def claim_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that claim items."""
    mark_error, release, release_unguarded, failing = _cleanups(world.queue, api)
    queue = world.queue

    @api.tool(error_handler=mark_error)
    def fetch_next_item(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim and return the next work item for this worker."""
        return _claim(queue, owner)

    @api.tool(error_handler=release)
    def claim_or_release(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; it is given back if the job dies."""
        return _claim(queue, owner)

    @api.tool(error_handler=release_unguarded)
    def claim_unguarded(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; its cleanup does not check who owns it."""
        return _claim(queue, owner)

    @api.tool(error_handler=failing)
    def claim_with_failing_cleanup(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; its cleanup raises."""
        return _claim(queue, owner)

    @api.tool
    def claim_without_cleanup(owner: QueueOwner, **kwargs: Any) -> Any:
        """Claim the next work item; nothing cleans up after it."""
        return _claim(queue, owner)

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
        _future_claim(world, api, mark_error),
    ]


def _claim(queue: WorkQueue, owner: QueueOwner) -> tuple[QueueOwner, WorkItem] | None:
    item = queue.claim_next(owner)
    return None if item is None else (owner, item)


def _cleanups(queue: WorkQueue, api: ToolApi) -> tuple[Callable[..., Any], ...]:
    """Return four error handlers: mark the item, release it, release it without checking its owner, or raise."""

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

    return _mark_item_error, _release_item, _release_without_guard, _failing_cleanup


def _future_claim(world: World, api: ToolApi, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool whose claim exists only once its future resolves ("Error Handling", Future-Returning Claims)."""

    @api.stored
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
            future.claimed = api.kept((future.owner, item))
        return future.claimed  # type: ignore[no-any-return]  # set just above

    @api.temporal(complement=take, condition=is_ready)
    @api.tool(error_handler=handler)
    def wait_for_next_item(owner: QueueOwner, **kwargs: Any) -> Any:
        """Return a future that resolves to (owner, item) when work is available."""
        return NextItem(owner)

    return wait_for_next_item


def item_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that inspect and change items."""

    @api.tool
    def process_item(item: WorkItem, **kwargs: Any) -> str:
        """Process a claimed work item."""
        world.queue.complete(item)
        # A tool sees what agent code wrote there.
        with access(IN_METHOD):
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


def waiting_tools(world: World, api: ToolApi) -> list[Callable[..., Any]]:
    """Return the tools that return futures for external events."""

    @api.stored
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
