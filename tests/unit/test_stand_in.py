"""The stand-ins for `statek` and `dbzero`: what they hold, refuse and forget, as dbzero 0.7 does it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from importlib import import_module
from typing import Any

import pytest

from statek_sim.providers.script import text
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.execution.runtime import Runtime, active
from statek_sim.shim import queries, store
from statek_sim.shim.agents import DialogAgent, SupervisedAgent
from statek_sim.shim.covered_names import MODULES, NotCovered, StandIns
from statek_sim.shim.memo import enum, is_memo, memo
from statek_sim.shim.store import Store, opened_store
from tests.tables import table_test

Colour = enum("Colour", ["RED", "BLUE"])


@memo
class Thing:
    """A stored object."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


@memo
class Special(Thing):
    """A stored object of a derived class."""


@memo
@dataclass
class Record:
    """A stored dataclass."""

    name: str
    items: list[Any] = field(default_factory=list)


@memo(singleton=True)
class Root:
    """The only one of its kind."""

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.things: list[Any] = []


class Plain:
    """Not stored."""


class Ordinary(Enum):
    """An enumeration that dbzero does not know."""

    ONE = 1


def function() -> None:
    """A function of a module."""


@pytest.fixture(autouse=True)
def _store() -> Iterator[None]:
    with opened_store(), active(Runtime(ScriptedLLM([]))):
        yield


@table_test("value", [None, True, 1, -(2**63), 1.5, "xy", b"xy", datetime(2026, 1, 1), function, Thing])
def test_what_can_be_stored_comes_back_as_it_was(value: object) -> None:
    assert Thing(value).value is value


EARLY = Colour.RED


def test_a_value_that_was_taken_before_there_was_a_store_is_shown_without_its_enumeration() -> None:
    assert (repr(EARLY), str(EARLY), EARLY) == ("<EnumValue ???.RED>", "RED", Colour.RED)
    assert repr(Thing([EARLY]).value) == repr([Thing(EARLY).value]) == "[<EnumValue Colour.RED>]"
    assert {EARLY: 1}[Colour.RED] == 1


def test_a_name_of_an_enumeration_has_one_list_of_values() -> None:
    assert enum("Colour", ["RED", "BLUE"]) is Colour
    with pytest.raises(
        RuntimeError, match=r"^Enum type already defined with different values: Colour in module $"
    ):
        enum("Colour", ["RED"])


@pytest.mark.parametrize("value", [[1, [2]], {"a": [1]}, {1, 2}, (1, "x")])
def test_collections_are_copied(value: Any) -> None:
    stored = Thing(value).value
    assert stored == value
    assert stored is not value
    assert type(stored).__name__ == type(value).__name__.capitalize()


@pytest.mark.parametrize(
    "value",
    [Plain(), Ordinary.ONE, timedelta(1), 1j, frozenset({1}), ...],
    ids=lambda value: repr(value)[:9],
)
def test_what_dbzero_refuses_is_refused(value: object) -> None:
    with pytest.raises(AttributeError, match=r"^Unsupported attribute type\n") as refused:
        Thing(value)
    assert refused.value.__notes__[0].startswith("Thing.value cannot be ")


def test_lambdas_are_refused_in_dbzeros_words() -> None:
    with pytest.raises(AttributeError, match=r"PyToolkit\.cpp, line 372: Lambda functions are not allowed"):
        Thing(lambda: 1)


def test_numbers_have_64_bits() -> None:
    with pytest.raises(
        SystemError, match=r"^<function Thing.__init__ at 0x\.\.\.> returned a result with an exc"
    ):
        Thing(2**63)
    thing = Thing(1)
    with pytest.raises(OverflowError, match=r"^int too big to convert$"):
        thing.value = 2**63
    assert thing.value == -1


def test_the_text_of_a_stored_object_is_its_stores() -> None:
    assert str(Thing(1)) == f"<{Thing.__module__}.Thing instance uuid={'A' * 24}>"
    assert repr(Thing(1)).startswith(f"<{Thing.__module__}.Thing object at 0x")


def test_what_goes_into_a_collection_is_checked_too() -> None:
    root = Root()
    for put in (root.things.append, lambda item: root.things.extend([item])):
        with pytest.raises(RuntimeError, match=r"^Type unsupported by dbzero: Plain$"):
            put(Plain())
    with pytest.raises(
        AttributeError, match=r"PyTypeManager\.cpp, line 203: Type unsupported by dbzero: Plain\n: "
    ):
        Thing({"key": [Plain()]})
    assert root.things == []


@pytest.mark.parametrize("name", ["sort", "insert", "reverse"])
def test_stored_lists_lack_what_dbzeros_lack(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^'List' object has no attribute '{name}'$"):
        getattr(Root().things, name)


def test_a_singleton_is_made_once() -> None:
    assert Root(7) is Root(9)
    assert Root().value == 7


def test_every_store_has_singletons_of_its_own() -> None:
    Root(7)
    with opened_store():
        assert Root().value == 0


def test_without_a_store_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._Current, "store", None)
    with pytest.raises(RuntimeError, match=r"^dbzero not initialized$"):
        Thing()


def test_after_the_store_is_closed_its_objects_are_not_accessible() -> None:
    with opened_store():
        thing = Thing(1)
    with pytest.raises(RuntimeError, match=r"^Object is no longer accessible$"):
        _ = thing.value
    with pytest.raises(RuntimeError, match=r"^Object is no longer accessible$"):
        thing.value = 2


def test_a_class_that_derives_from_a_stored_one_must_be_stored_too() -> None:
    class Derived(Thing):
        """Not decorated."""

    with pytest.raises(
        TypeError, match=r"^Derived derives from a stored class: decorate it with @dbzero\.memo too$"
    ):
        Derived()


def test_dataclasses_keep_their_equality_and_have_a_hash() -> None:
    one, other = Record("x"), Record("x")
    assert one == other
    assert len({one, one}) == 1


def test_the_newest_is_found_first_and_derived_classes_with_it() -> None:
    kept = [Thing(1), Special(2), Thing(3)]
    assert [thing.value for thing in queries.find(Thing)] == [3, 2, 1]
    assert [thing.value for thing in queries.find(Special)] == [2]
    assert len(kept) == 3


def test_what_nobody_holds_is_gone_unless_it_has_a_tag() -> None:
    Thing("lost")
    queries.tags(Thing("tagged")).add("keep")
    Root().things.append(Thing("held"))
    gc.collect()
    assert [thing.value for thing in queries.find(Thing)] == ["held", "tagged"]


def test_tags_find_their_objects() -> None:
    one, other = Thing(1), Thing(2)
    queries.tags(one).add("a", Colour.RED)
    queries.tags(other).add(queries.as_tag(one))
    assert list(queries.find(Thing, "a")) == [one]
    assert list(queries.find(Thing, Colour.RED)) == [one]
    assert list(queries.find(Thing, queries.no("a"))) == [other]
    assert list(queries.find(Thing, ["a", "b"])) == [one]
    assert list(queries.find(Thing, queries.as_tag(one))) == [other]
    queries.tags(one).remove("a")
    assert not queries.find(Thing, "a")


def test_enum_values_are_equal_to_themselves_only() -> None:
    assert str(Colour.RED) == "RED"
    assert repr(Colour.RED) == "<EnumValue Colour.RED>"
    assert Colour.RED != "RED"
    assert Colour.values() == (Colour.RED, Colour.BLUE)
    with pytest.raises(AttributeError, match=r"^'dbzero.Enum' object has no attribute 'GREEN'$"):
        _ = Colour.GREEN


def test_objects_are_fetched_by_their_id() -> None:
    thing, root = Thing(1), Root()
    assert queries.fetch(queries.uuid(thing)) is thing
    assert queries.fetch(Root) is root
    assert not queries.exists("nope")
    with pytest.raises(RuntimeError, match=r"^Invalid UUID: nope$"):
        queries.fetch("nope")


def test_only_stored_classes_are_memo() -> None:
    assert is_memo(Thing)
    assert is_memo(Thing())
    assert not is_memo(1)


def test_options_of_memo_that_mean_something_else_here_are_refused() -> None:
    with pytest.raises(
        NotCovered, match=r"^dbzero\.memo\(immutable=\.\.\.\): the reference runtime does not support it; "
    ):
        memo(immutable=True)


def test_an_agent_without_a_model_has_no_jobs() -> None:
    agent = SupervisedAgent(role="clerk", _system_prompt=None, _tools=[])
    with pytest.raises(ValueError, match=r"^Agent 'clerk' is missing required metadata field 'MODEL'$"):
        Runtime(ScriptedLLM([])).create_job(agent)


def test_a_dialog_agent_talks_and_its_deliveries_are_in_the_trace() -> None:
    said: list[str] = []

    def send(body: str, media: object = None) -> None:
        said.append(body)

    sender: Any = send
    sender.__qualname__ = "send"
    agent = DialogAgent(sender, role="host", _metadata={"MODEL": "gpt-4o"})
    runtime = Runtime(ScriptedLLM({"host": [text("Hello!")]}), profile="1.4")
    with active(runtime):
        job = runtime.create_job(agent, message="Hi")
        runtime.run()
    assert said == ["Hello!"]
    assert [event.body for event in job.trace.delivered()] == said


@table_test("module", MODULES)
def test_every_name_of_a_stand_in_has_a_home(module: str) -> None:
    for home in MODULES[module].values():
        place, _, name = home.partition(":")
        assert hasattr(import_module(place), name), home


def test_the_stand_ins_are_there_from_install_to_remove() -> None:
    assert not {"statek", "dbzero"} & set(sys.modules)
    stand_ins = StandIns()
    stand_ins.install()
    try:
        statek = import_module("statek")
        assert statek.tool is import_module("statek.system").tool
        assert "tool" in dir(statek)
        assert not hasattr(statek, "__author__")
    finally:
        stand_ins.remove()
    assert "statek" not in sys.modules
    assert stand_ins not in sys.meta_path


def test_models_on_dbzero_that_are_not_installed_are_asked_for_by_name() -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r"^dbzero_modelkit is not installed: pip install dbzero-modelkit "
    ):
        StandIns().find_spec("dbzero_modelkit", path=[])


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("allocations", range(20))
def test_objects_that_are_collected_during_a_query_are_left_out(allocations: int) -> None:
    store, threshold = Store(), gc.get_threshold()
    for _ in range(50):
        store.add(Circle())
    gc.set_threshold(gc.get_count()[0] + allocations)
    try:
        assert len(store.newest_first()) <= 50
    finally:
        gc.set_threshold(*threshold)
