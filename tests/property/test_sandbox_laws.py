"""Laws of the sandbox: code means what it means in Python, and counts the same everywhere."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.llm_repr import llm_repr
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet, stable_hash
from tests.unit.sandbox_session import Session

SESSION = Session()

literals = st.one_of(
    st.integers(-50, 50).map(repr),
    st.text("ab%sd{} ", max_size=4).map(repr),
    st.floats(-10, 10).map(repr),
    st.sampled_from(["True", "None", "[1, 2]", "(1,)", "{1, 2}", "{'a': 1}", "[]", "''", "x", "y"]),
)
operators = st.sampled_from(
    [
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "|",
        "&",
        "^",
        "<<",
        ">>",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "not in",
        "is",
        "and",
        "or",
    ]
)


def compound(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, operators, parts).map(lambda found: f"({found[0]} {found[1]} {found[2]})"),
        st.tuples(parts, parts).map(lambda found: f"[{found[0]}, {found[1]}][0]"),
        st.tuples(parts, parts).map(lambda found: f"(lambda q: q)({found[0]})"),
        parts.map(lambda part: f"[{part} for q in [1, 2]]"),
        parts.map(lambda part: f"list({part})"),
        parts.map(lambda part: f"str({part})"),
        parts.map(lambda part: f"len({part})"),
        parts.map(lambda part: f"({part})[1:]"),
        parts.map(lambda part: f"(not {part})"),
    )


expressions = st.recursive(literals, compound, max_leaves=6)
hashables = st.one_of(
    st.integers(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.tuples(st.text(max_size=2), st.integers(0, 3)),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


def outcome(evaluate: Any) -> tuple[str, object]:
    try:
        return "value", repr(evaluate())
    except Exception as error:  # noqa: BLE001  # whatever the expression raises is its outcome
        return type(error).__name__, str(error)


def in_sandbox(expression: str) -> object:
    SESSION.names.update(x=3, y="ab")
    SESSION.run(f"z = {expression}")
    return SESSION.names["z"]


@given(expressions)
def test_an_expression_means_what_it_means_in_python(expression: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = outcome(lambda: eval(expression, {"x": 3, "y": "ab"}))
    assert outcome(lambda: in_sandbox(expression)) == plain


@given(st.lists(hashables), st.lists(hashables), st.sampled_from([OrderedSet, OrderedFrozenSet]))
def test_ordered_sets_follow_the_algebra_of_sets(left: list[Any], right: list[Any], kind: Any) -> None:
    for combine in (operator.or_, operator.and_, operator.sub, operator.xor, operator.eq, operator.le):
        assert combine(kind(left), kind(right)) == combine(set(left), set(right))
    assert len(kind(left)) == len(set(left))


@given(st.lists(st.text(max_size=3) | st.tuples(st.text(max_size=2))), st.randoms(use_true_random=False))
def test_a_set_comes_out_in_one_order_however_it_was_filled(items: list[Any], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    assert list(OrderedSet(items)) == list(OrderedSet(shuffled))
    assert repr(OrderedSet(items)) == repr(OrderedSet(shuffled))


@given(hashables, hashables)
def test_equal_values_have_equal_stable_hashes(left: Any, right: Any) -> None:
    if left == right:
        assert stable_hash(left) == stable_hash(right)
    assert stable_hash((left, right)) == stable_hash((left, right))


@given(values)
def test_every_plain_value_can_be_shown(value: Any) -> None:
    assert isinstance(llm_repr(value), str)
    assert llm_repr([value], is_nested=True).startswith("[")


@given(st.integers(0, 60), st.integers(1, 60))
def test_a_loop_is_stopped_exactly_at_its_limit(turns: int, limit: int) -> None:
    session = Session(budget=ExecutionBudget(loop_iterations=limit))
    try:
        session.run(f"n = 0\nfor i in range({turns}): n += 1")
    except BudgetExceeded:
        assert turns > limit
        assert session.names["n"] == limit
    else:
        assert turns <= limit
        assert session.names["n"] == session.budget.iterations == turns
