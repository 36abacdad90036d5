from __future__ import annotations

import pytest

from statek_sim.backends.reference import tool_api
from statek_sim.runtime.execution.toolbox import get_all, get_any
from statek_sim.runtime.state import futures
from statek_sim.tool_names import BUILT_IN_TOOLS
from statek_sim.world.queue import ItemStatus, QueueOwner, WorkItem, WorkQueue
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import World


@pytest.fixture
def world() -> World:
    return World(items=[WorkItem("a"), WorkItem("b")], futures=["approval"])


@pytest.fixture
def built_in(world: World) -> WorldTools:
    return WorldTools(world, tool_api({}))


def test_every_listed_tool_exists_under_its_name_and_says_what_it_does(built_in: WorldTools) -> None:
    for name in built_in:
        assert built_in[name].__name__ == name
        assert built_in[name].__doc__


def test_scenarios_know_exactly_the_tools_that_there_are(built_in: WorldTools) -> None:
    given = [function.__name__ for function in (get_any, get_all)]
    assert [*given, *built_in] == list(BUILT_IN_TOOLS)
    assert [built_in[name].__name__ for name in BUILT_IN_TOOLS[len(given) :]] == list(built_in)


def test_claims_go_to_the_first_ready_item_and_then_there_are_none(
    built_in: WorldTools, world: World
) -> None:
    claimed = [built_in["fetch_next_item"](world.owner) for _ in range(3)]
    assert [None if pair is None else pair[1].id for pair in claimed] == ["a", "b", None]


def test_completing_an_item_that_nobody_holds_is_an_error() -> None:
    queue = WorkQueue([WorkItem("a")])
    with pytest.raises(RuntimeError, match=r"^item is not claimed by this job$"):
        queue.complete(queue.items["a"])


def test_an_owner_guard_holds_only_for_the_owner_of_a_claim() -> None:
    item = WorkItem("a", ItemStatus.CLAIMED, "me")
    assert item.held_by(QueueOwner("me"))
    assert not item.held_by(QueueOwner("you"))


def test_a_future_of_the_world_is_ready_once_its_event_happened(built_in: WorldTools, world: World) -> None:
    future = built_in["wait_for"]("approval")
    assert not future.check_condition()
    with pytest.raises(futures.FutureError):
        _ = future.value
    world.events.resolve("approval", 42)
    assert future.value == 42
