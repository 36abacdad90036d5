"""What a scenario's file says of a job's variables becomes objects of the runtime that plays it."""

from __future__ import annotations

from statek_sim.backends.driver import argument
from statek_sim.values import JSON
from statek_sim.world.queue import WorkItem
from statek_sim.world.world import World

WORLD = World(owner="w-1", items=[WorkItem("a")], futures=["door"])


def test_references_become_objects_of_the_world_wherever_they_stand() -> None:
    value = argument(
        {"all": [{"$world": "queue"}, {"$world": "item:a"}], "door": {"$world": "future:door"}, "n": 1},
        WORLD,
        lambda name: name,
    )
    assert value == {"all": [WORLD.queue, WORLD.queue.items["a"]], "door": WORLD.events["door"], "n": 1}


def test_owners_are_one_object_each() -> None:
    def owner(name: str) -> object:
        return argument({"$world": name}, WORLD, lambda name: name)

    assert owner("owner") is owner("owner:w-1") is WORLD.owner
    assert owner("owner:w-2") is owner("owner:w-2") is not WORLD.owner


def test_a_job_is_looked_up_by_its_name() -> None:
    assert argument([{"$job": "main"}], WORLD, {"main": "the job"}.__getitem__) == ["the job"]


def test_containers_are_copied_so_that_no_job_changes_the_file() -> None:
    written: JSON = {"rates": [1, 2]}
    given = argument(written, WORLD, lambda name: name)
    given["rates"].append(3)
    assert written == {"rates": [1, 2]}
