from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from statek_sim.sandbox.ordered_set import (
    OrderedFrozenSet,
    OrderedSet,
    stable_hash,
    stable_set,
    without_addresses,
)
from tests.unit.sandbox_session import Session


def test_iteration_follows_type_name_and_repr() -> None:
    assert list(OrderedSet(["b", None, "a", (1,)])) == [None, "a", "b", (1,)]


def test_numbers_keep_pythons_own_order() -> None:
    numbers = [40, 3, 2.5, 100, -1]
    assert list(OrderedSet(numbers)) == list(set(numbers))


def test_sets_print_in_order() -> None:
    assert repr(OrderedSet("cab")) == "{'a', 'b', 'c'}"
    assert (repr(OrderedSet()), repr(OrderedFrozenSet())) == ("set()", "frozenset()")
    assert repr(OrderedFrozenSet("ba")) == "frozenset({'a', 'b'})"


@pytest.mark.parametrize("kind", [OrderedSet, OrderedFrozenSet])
def test_operators_and_methods_keep_the_kind(kind: Any) -> None:
    one, two = kind("ab"), kind("bc")
    results = [
        one | two,
        one & two,
        one - two,
        one ^ two,
        one.union("x"),
        one.copy(),
        {"z"} | one,
        one | {"z"},
    ]
    assert [sorted(result) for result in results[:4]] == [["a", "b", "c"], ["b"], ["a"], ["a", "c"]]
    assert all(type(result) is kind for result in results[:6])


def test_they_are_sets_by_every_name() -> None:
    assert isinstance(OrderedSet(), set)
    assert isinstance(set(), OrderedSet)
    assert not isinstance(frozenset(), OrderedSet)
    assert (OrderedSet.__name__, repr(OrderedFrozenSet)) == ("set", "<class 'frozenset'>")
    with pytest.raises(TypeError, match="'set' and 'int'"):
        OrderedSet() + 1  # type: ignore[operator]


def test_pop_takes_the_first() -> None:
    found = OrderedSet("cab")
    assert [found.pop(), found.pop(), found.pop()] == ["a", "b", "c"]
    with pytest.raises(KeyError, match="pop from an empty set"):
        found.pop()


def test_they_can_be_copied_and_pickled() -> None:
    found = OrderedSet([("a", 1), ("b", 2)])
    assert type(copy.deepcopy(found)) is OrderedSet
    assert copy.deepcopy(found) == found
    assert pickle.loads(pickle.dumps(found)) == set(found)


def test_plain_sets_become_ordered_and_other_values_stay() -> None:
    assert type(stable_set({"a"})) is OrderedSet
    assert type(stable_set(frozenset())) is OrderedFrozenSet
    value = ["a"]
    assert stable_set(value) is value


def test_addresses_are_blanked_out() -> None:
    assert without_addresses("<f at 0x7f12ab> and <g at 0xAB>") == "<f at 0x...> and <g at 0x...>"


def test_hash_agrees_with_equality_of_numbers_and_refuses_the_unhashable() -> None:
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True) == 1
    assert stable_hash((1, "a")) == stable_hash((1.0, "a")) != stable_hash(("a", 1))
    assert stable_hash(frozenset("ab")) == stable_hash(frozenset("ba"))
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        stable_hash(([],))


SHOWN = """
import datetime
print(hash('a'), hash((1, 'b', None)), hash(datetime.date(2024, 1, 1)), hash(len), hash(b'x'))
names = {'pear', 'apple', 'fig', None, (1, 'x')}
print([n for n in names], list(names)[0], repr(names), str(frozenset('xyz')), ','.join({'q', 'r', 's'}))
for n in {'k%d' % i for i in range(5)} | {'z'}: print(n)
d = {'b': 1, 'a': 2, 'c': 3}
print(list(d.keys() & {'a', 'c'}), list(d.keys() - {'a'}), dict.fromkeys({'u', 'v', 'w'}), max({'aa', 'bb'}, key=len))
a, *rest = {'x', 'y', 'z'}
print(a, rest, names.pop(), [*{'e', 'f'}], sorted({'t', 's'}, key=lambda v: 0), list(map(str, {'g', 'h'})))
"""


def test_nothing_an_agent_sees_depends_on_the_hash_seed() -> None:
    program = f"from tests.unit.sandbox_session import Session\nprint(Session().run({SHOWN!r}))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert "pear" in outputs.pop()


def test_sets_written_in_code_are_ordered() -> None:
    assert Session().run("[x for x in {'b', 'a'}], {c for c in 'ba'}.pop()") == ['(["a","b"],"a")']
