"""The stand-in store in another process: objects have the numbers, tags and classes that they had in the one before."""

from __future__ import annotations

from typing import Any

from statek_sim.durability.graph import Graph
from statek_sim.durability.kinds import anchored
from statek_sim.shim.memo import enum, memo, number_of
from statek_sim.shim.queries import as_tag, find, tags
from statek_sim.shim.store import current_store, opened_store
from statek_sim.shim.worker import StoredObjects
from statek_sim.usage.conversation import MessageMeter
from statek_sim.usage.tokenizers import tokenizer_for_model

Paint = enum("Paint", ["RED", "GREEN"])


@memo
class Box:
    def __init__(self, label: str) -> None:
        self.label = label
        self.colour = Paint.GREEN


@memo(singleton=True)
class Shelf:
    def __init__(self) -> None:
        self.boxes: list[Any] = []


def graph(beside: StoredObjects) -> Graph:
    return Graph(
        anchored([], beside.named(), beside.tools(), beside.in_place_of),
        MessageMeter(tokenizer_for_model("gpt-4o")),
    )


def test_objects_are_what_they_were_and_the_singleton_that_is_held_has_them() -> None:
    beside = StoredObjects()
    with opened_store():
        shelf = Shelf()
        shelf.boxes = [Box("first"), Box("second"), Box("third")]
        first, second, _ = shelf.boxes
        tags(second).add("heavy")
        tags(first).add(as_tag(second))
        numbers = [number_of(box) for box in shelf.boxes]
        rows = graph(beside).rows({"beside": beside.saved()})
    with opened_store():
        mine = [Box("of this process"), Box("another one")]
        held = Shelf()
        held.boxes = mine
        beside.resume(graph(beside).read(rows)["beside"])
        assert Shelf() is held
        assert [(box.label, box.colour is Paint.GREEN) for box in held.boxes] == [
            ("first", True), ("second", True), ("third", True),
        ]  # fmt: skip
        assert [number_of(box) for box in held.boxes] == numbers
        assert [box.label for box in find(Box, "heavy")] == ["second"]
        assert [box.label for box in find(Box, as_tag(held.boxes[1]))] == ["first"]
        # What this process had made under these numbers is still there, under others.
        assert [box.label for box in mine] == ["of this process", "another one"]
        taken = [number_of(one) for one in (held, *held.boxes, *mine, Box("new"))]
        assert len(set(taken)) == len(taken)
        assert [current_store().with_number(number_of(box)) for box in mine] == mine
