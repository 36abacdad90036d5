"""The built-in world on STATEK: the same tools, decorated by STATEK, with objects that its store can keep."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Final

import dbzero
import statek
from statek import executors
from statek.exceptions import FutureError
from statek.future import get_all_future, get_any_future, temporal
from statek.task import delegate_task

from statek_sim.backends.installed import stored_objects as stored
from statek_sim.scenario.schema import World as WrittenWorld
from statek_sim.values import JSON
from statek_sim.world.queue import ItemStatus, WorkItem, WorkQueue
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import ExternalEvents, Ledger, ToolApi, World


class StoredWorld(World):
    """The world with objects of the store."""

    def new_owner(self, name: str) -> Any:
        """Return an owner that was not there; the store must be open."""
        return stored.QueueOwner(name)

    @property
    def queue_value(self) -> object:
        """The queue as a job's variable has it."""
        return stored.WorkQueue()


WORLD: Final = StoredWorld()
"""The world of the scenario that this process runs. The tools are made once: a hidden one must exist before STATEK
is initialised, and the store wants functions by name."""

AGENTS: Final[dict[str, Any]] = {}

_PUBLISHED: Final = types.ModuleType("statek_sim_published", "Functions that the store finds by name.")
sys.modules[_PUBLISHED.__name__] = _PUBLISHED


def reset(written: WrittenWorld, changed: Callable[[str, str], None]) -> None:
    """Bring the world to where the scenario starts; the store must be open. `changed` hears of every change."""
    queue = written.queue
    items = (
        WorkItem(item.id, ItemStatus(item.status), item.owner)
        for item in (queue.items if queue is not None else ())
    )
    stored.LIVE.queue = WorkQueue(items, changed=changed)
    stored.LIVE.events = ExternalEvents(written.futures, changed=changed)
    enter_owners({}, queue.owner if queue is not None else "worker-1")
    WORLD.ledger = Ledger(changed=changed)


def enter_owners(owners: dict[str, Any], name: str) -> None:
    """Have these owners by id; the queue's own is called `name`, and made where it is not among them."""
    WORLD.owners = owners
    WORLD.owner = WORLD.owner_named(name)


def registered_tools() -> list[Any]:
    """Return every tool that STATEK knows."""
    return list(statek.system._TOOL_REGISTRY)


def items_now() -> dict[str, JSON]:
    """Return status, owner and error of every item."""
    return {
        item.id: {"status": str(item.status), "owner": item.owner_id, "error": item.error_message}
        for item in stored.LIVE.queue.items.values()
    }


def leaked_claims() -> list[JSON]:
    """Return the ids of items that somebody still holds."""
    return [item.id for item in stored.LIVE.queue.claimed()]


def published(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a function where the store looks for it: in a module, under a name of its own."""
    if function.__module__ != _PUBLISHED.__name__:
        function.__qualname__ = function.__qualname__.replace(".<locals>.", "__")
        function.__module__ = _PUBLISHED.__name__
    setattr(_PUBLISHED, function.__qualname__, function)
    return function


def _tool(function: Any = None, **options: Any) -> Any:
    if function is None:
        return lambda given: _tool(given, **options)
    return published(statek.tool(published(function), **options))


def _subtask(function: Any) -> Any:
    return published(statek.subtask(published(function)))


def _error_handler(function: Any) -> Any:
    return published(statek.error_handler(published(function)))


def _temporal(*, complement: Any, condition: Any) -> Any:
    decorate = temporal(complement=published(complement), condition=published(condition))
    return lambda function: published(decorate(function))


def _harness() -> Any:
    """Return the harness in force; the stage puts its own in STATEK's place."""
    return executors.utils.get_llm_harness()


def _make_tools() -> WorldTools:
    WORLD.queue = stored.Queue()  # type: ignore[assignment]  # the same methods, on stored items
    WORLD.events = stored.Events()  # type: ignore[assignment]  # what tools use of it
    api = ToolApi(
        tool=_tool,
        subtask=_subtask,
        error_handler=_error_handler,
        temporal=_temporal,
        future=stored.FutureResult,
        future_error=FutureError,
        get_current_job=statek.get_current_job,
        create_new_job=statek.create_new_job,
        complete_sub_task=statek.complete_sub_task,
        delegate_task=delegate_task,
        any_future=get_any_future,
        all_future=get_all_future,
        get_llm_harness=_harness,
        agents=AGENTS,
        stored=dbzero.memo,
    )
    tools = WorldTools(WORLD, api, extra=(statek.get_any, statek.get_all))
    for name in tools:
        # Asking for a tool makes it.
        assert tools[name] is not None
    return tools


TOOLS: Final = _make_tools()
