"""Live objects as rows and back: values, identity, what is dropped, and what a damaged row says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import count
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.backends.durable import DurableRun
from statek_sim.backends.durable import _anchors as anchors_of
from statek_sim.durability.graph import Graph
from statek_sim.durability.kinds import Anchors
from statek_sim.durability.writing import DEEPEST, ROOT
from statek_sim.errors import Damaged
from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.storable_types import stored
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet
from statek_sim.scenario.load import load_or_fail
from statek_sim.store.protocol import Changes, Lease, Stored
from statek_sim.suite.run import builtin_suites
from statek_sim.usage.conversation import MessageMeter
from statek_sim.usage.tokenizers import tokenizer_for_model
from tests.tables import table_test
from tools.durability import NoStore

METER = MessageMeter(tokenizer_for_model("gpt-4o"))


@stored
class Thing:
    """An application's class."""

    def __init__(self, value: object) -> None:
        self.value = value


@stored
class Key:
    """An application's class whose objects are equal by what they hold."""

    def __init__(self, number: object, home: object = None) -> None:
        self.home = home
        self.number = number

    def __hash__(self) -> int:
        if isinstance(self.number, set):
            return hash(frozenset(self.number))
        return hash(self.number) if isinstance(self.number, Key) else hash(repr(self.number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.number == self.number


@stored
class Parent:
    """One whose children are known by it."""

    def __init__(self, number: int) -> None:
        self.children = frozenset[Child]()
        self.number = number


@stored
class Child:
    """One that is known by its parent."""

    def __init__(self, parent: Parent) -> None:
        self.parent = parent

    def __hash__(self) -> int:
        return hash(self.parent.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Child) and other.parent is self.parent


class Plain:
    """A class whose objects no store keeps."""


def anchors() -> Anchors:
    found = Anchors()
    found.add_function("tool:user", user)
    return found


def user(value: object) -> Thing:
    """Stand for a tool of this module's."""
    return Thing(value)


def back(value: object) -> Any:
    """Return a value as another process has it."""
    graph = Graph(anchors(), METER)
    assert graph.why_not(value) is None
    return Graph(anchors(), METER).read(graph.rows({"value": (value,)}))["value"][0]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are alike with their types, signs and orders."""
    return repr(one) == repr(other) and type(one) is type(other)


ZONES = st.sampled_from(
    [
        None, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=1), "CET"),
        timezone(timedelta(0), "Z"), ZoneInfo("Europe/Warsaw"),
    ]
)  # fmt: skip
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary(),
    st.decimals(), st.dates(), st.times(timezones=ZONES), st.datetimes(timezones=ZONES), st.timedeltas(),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 5)),
    st.text(alphabet=st.characters(categories=["Cs", "Cc"])),
)  # fmt: skip
HASHABLE = st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers()))
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(HASHABLE, inner),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    assert same(back(value), value)


@table_test(
    "value",
    [
        -0.0, math.inf, 2**70, -(2**63), Decimal("1E+6"), date(1, 1, 1), time(1, 2, 3, fold=1),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Warsaw")), "\0", "\ud800", {"$": "e", "v": "e1"},
        {1: "a", "1": "b"}, OrderedSet([3, 1]), OrderedFrozenSet("ba"), frozenset({1}), len, int,
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_that_json_has_no_word_for_comes_back(value: object) -> None:
    assert same(back(value), value)


def test_objects_keep_their_identity_also_in_circles() -> None:
    shared: list[object] = [1]
    thing = Thing(shared)
    circle: dict[str, object] = {"thing": thing, "shared": shared}
    circle["self"] = circle
    found = back(circle)
    assert found["thing"].value is found["shared"]
    assert found["self"] is found


def test_an_object_keeps_its_row_as_long_as_the_run_lives() -> None:
    graph, thing = Graph(anchors(), METER), Thing([])
    before = graph.rows({"value": (thing,)})
    thing.value.append(1)  # type: ignore[attr-defined]  # the list above
    after = graph.rows({"value": (thing,)})
    assert before.keys() == after.keys()
    assert sum(before[name] != after[name] for name in before) == 1


@table_test(
    ("value", "reason"),
    [
        (Plain(), "Plain cannot be stored"),
        ([iter([])], "list: list_iterator cannot be stored"),
        (lambda: 1, "function <lambda> was created while the job was running"),
        ({"f": [Thing(Plain())]}, "dict: Plain cannot be stored"),
        (json.dumps, "function 'dumps' is not defined in a tool's module"),
        (Plain, None),
        (Signal(), None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_stored_says_why(value: object, reason: str | None) -> None:
    known = Anchors()
    known.add_function("tool:user", user)
    known._modules.discard("json")
    assert Graph(known, METER).why_not(value) == reason


@table_test(
    ("rows", "told"),
    [
        ({}, "row 'root' is missing"),
        ({"root": '{"k":"root","v":{"a":{"$":"e","v":"e1"}}}'}, "row 'e1' is missing"),
        ({"root": "{"}, "a row in the store cannot be read: JSONDecodeError"),
        ({"root": '{"k":"root","v":{"a":{"$":"pickle","v":"x"}}}'}, "cannot be read: KeyError: 'pickle'"),
        ({"root": '{"k":"root","v":{"a":{"$":"g","v":"os:system"}}}'}, "the store refers to 'os:system'"),
        ({"root": '{"k":"root","v":{"a":{"$":"a","v":"agent:x"}}}'}, "the store refers to 'agent:x'"),
        (
            {"root": '{"k":"root","v":{"a":{"$":"e","v":"e1"}}}', "e1": '{"k":"g:builtins:open","v":{}}'},
            "the store contains an object of class 'builtins:open', whose objects cannot be stored",
        ),
    ],
)  # fmt: skip
def test_rows_that_were_never_written_so_are_damage(rows: dict[str, str], told: str) -> None:
    with pytest.raises(Damaged, match=told):
        Graph(anchors(), METER).read(rows)


class Remembering(NoStore):
    """A store in memory, with the last commit before the end."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.events: list[str] = []
        self.look: Callable[[], None] = lambda: None

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        self.rows = {
            name: row for name, row in {**self.rows, **changes.rows}.items() if name not in changes.gone
        }
        self.events += changes.events
        self.look()
        return super().commit(lease, changes)


LEASE = Lease(run="r", worker="w", fence=1, revision=0)


PROJECTED_ANEW: Final = "a-class-of-agent-code"
"""Its history is projected anew when the ended run is read, so that one row differs; its trace does not."""


@pytest.mark.parametrize("every", [90, pytest.param(9, marks=pytest.mark.slow)])
def test_what_was_read_is_written_as_it_was(every: int) -> None:
    scenarios = [
        one
        for one in load_or_fail([builtin_suites()])
        if one.engine == "statek" and not one.deviations and one.id != PROJECTED_ANEW
    ]
    for scenario in scenarios[::every]:
        store, profile = Remembering(), scenario.profiles[-1]
        record = DurableRun(store, LEASE, scenario, profile).finish()
        before = dict(store.rows)
        found = Stored(run="r", about={}, status="ended", revision=1, rows=before, events=[*store.events])
        assert DurableRun(store, LEASE, scenario, profile, stored=found).finish().digest == record.digest
        # In the root the clock may move to the end of the run; every object is as it was.
        assert {**dict(store.rows), "root": ""} == {**before, "root": ""}, scenario.id


@pytest.mark.parametrize("every", [60, pytest.param(6, marks=pytest.mark.slow)])
def test_every_commit_leaves_what_a_fresh_one_would_write(every: int) -> None:
    scenarios = [
        one for one in load_or_fail([builtin_suites()]) if one.engine == "statek" and not one.deviations
    ]
    for scenario in scenarios[::every]:
        store, commits = Remembering(), count()
        run = DurableRun(store, LEASE, scenario, scenario.profiles[-1])

        def look() -> None:
            if next(commits) % 5 == 0:  # noqa: B023
                with access(FULL):
                    fresh = Graph(anchors_of(run.run), METER).rows(run._saved())  # noqa: B023
                assert read(dict(store.rows)) == read(fresh), scenario.id  # noqa: B023

        store.look = look
        run.finish()
        # An agent that cannot be read is one commit, which was looked at.
        assert next(commits) > 0, scenario.id


@table_test(
    "make",
    [
        lambda key: {key: 1},
        lambda key: {(key, 2): 1},
        lambda key: {key},
        lambda key: frozenset([key]),
        lambda key: OrderedSet([key]),
        lambda key: OrderedFrozenSet([key]),
        lambda key: [{frozenset([(key,)]): [key]}],
    ],
)
@table_test("number", [1, [1, [2]], {"a": {3}}, Key(7), {Key(8)}])
def test_keys_and_members_with_a_hash_of_their_own_are_found_again(
    make: Callable[[object], Any], number: object
) -> None:
    key = Key(number)
    key.home = make(key)
    found = back((make(key), key))
    # By equal keys that were never stored.
    assert found[0] == make(Key(number)) == found[1].home


def test_a_child_that_is_known_by_its_parent_is_in_its_set() -> None:
    parent = Parent(3)
    parent.children = frozenset({Child(parent)})
    found = back(parent)
    assert [*vars(found)] == ["children", "number"]
    assert all(child in found.children and child.parent is found for child in found.children)
    assert len(found.children) == 1


def test_tuples_are_stored_so_deep_and_no_deeper() -> None:
    def nested(depth: int, innermost: object = ()) -> object:
        value = innermost
        for _ in range(depth):
            value = (value,)
        return value

    assert same(back(nested(DEEPEST)), nested(DEEPEST))
    told = f"tuple: tuples are nested more than {DEEPEST} levels deep"
    graph = Graph(anchors(), METER)
    assert [graph.why_not(nested(depth)) for depth in (DEEPEST + 1, 3000)] == [told, told]
    # A list is a row of its own: below it one may be as deep again.
    assert same(back(nested(DEEPEST, [nested(DEEPEST)])), nested(DEEPEST, [nested(DEEPEST)]))
    shared = nested(DEEPEST - 1)
    assert (
        graph.why_not([shared, nested(10, shared)])
        == f"list: tuples are nested more than {DEEPEST} levels deep"
    )


def test_what_was_lost_with_a_variable_has_a_new_row_when_another_variable_holds_it() -> None:
    graph, env, deep, variable = Graph(anchors(), METER), PyEnv(), ["deep"], ["variable"]
    inner, names, last = [deep], env.local_state, dict[str, str]()

    def commit() -> dict[str, str]:
        rows = graph.rows({"env": (env,)})
        graph.forget([name for name in last if name not in rows])
        last.clear()
        last.update(rows)
        return rows

    names.update(variable=variable, deep=deep)
    commit()
    # No store keeps a generator, so the variable is lost, and what it leads to with it.
    variable.append([inner, (_ for _ in ())])  # type: ignore[arg-type]
    commit()
    del names["deep"], variable[1]
    commit()
    names["again"] = inner
    read_back = Graph(anchors(), METER).read(commit())["env"][0]
    assert read_back.local_state == {"variable": ["variable"], "again": [["deep"]]}


def test_a_commit_after_changes_has_the_rows_of_a_fresh_one() -> None:
    graph, notes, thing = Graph(anchors(), METER), [*range(100)], Thing({"a": (1, [2])})
    root = {"value": (notes, thing)}
    graph.rows(root)
    changes: list[Callable[[], object]] = [
        lambda: notes.append(True),
        # Equal, and something else.
        lambda: notes.__setitem__(1, True),
        lambda: notes.insert(0, -1),
        lambda: notes.__delitem__(slice(50)),
        lambda: thing.value["a"][1].append(3),  # type: ignore[index]  # a dict
        lambda: thing.value.update(b=thing),  # type: ignore[attr-defined]  # a dict
        lambda: thing.__dict__.update(value=notes, more={1, 2}),
        lambda: thing.__dict__["more"].add(3),
        lambda: thing.__dict__.pop("more"),
    ]
    for change in changes:
        change()
        assert read(graph.rows(root)) == read(Graph(anchors(), METER).rows(root))
    assert read(graph.rows(root)) == read(graph.rows(root))


def read(rows: dict[str, str]) -> str:
    """Return rows as they would be had they been named in the order in which they are reached."""
    names: dict[str, str] = {}
    text, open_ = "", [ROOT]
    while open_:
        row = json.loads(rows[open_.pop(0)], object_hook=lambda one: named(one, names, open_))
        text += json.dumps(row)
    return text


def named(one: dict[str, Any], names: dict[str, str], open_: list[str]) -> dict[str, Any]:
    if one.get("$") != "e":
        return one
    if one["v"] not in names:
        names[one["v"]] = str(len(names))
        open_.append(one["v"])
    return {"$": "e", "v": names[one["v"]]}
