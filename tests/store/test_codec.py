"""Laws of the codec: what comes back is what went in."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.errors import BadInput, Damaged
from statek_sim.store.codec import canonical, decoded, encoded
from tests.tables import table_test

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
    | st.binary()
    | st.decimals(allow_nan=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(["$", "v"]), inner, max_size=4)
        | st.dictionaries(st.integers() | st.tuples(st.text(max_size=2)), inner, max_size=2)
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """Return a value with its types and the order of its keys, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return ("dict", [(shape(key), shape(one)) for key, one in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [shape(one) for one in value])
    return (type(value).__name__, repr(value))


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert shape(decoded(json.loads(canonical(encoded(value))))) == shape(value)


@table_test("value", [10**5000, -(7**9000), 2**2000, 2**2001], ids=int.bit_length)
def test_integers_of_any_length_come_back(value: int) -> None:
    assert decoded(json.loads(canonical(encoded([value])))) == [value]


def test_keys_of_a_kind_of_text_change_nothing_for_plain_ones_that_equal_them() -> None:
    class Name(str):
        """A text."""

    plain = canonical(encoded({"of its own": 1, "b": 2}))
    assert decoded(encoded({Name("an other"): 1, Name("b"): 2})) == {"an other": 1, "b": 2}
    once = canonical(encoded({Name("of its own"): 1, "b": 2}))
    assert canonical(encoded({"of its own": 1, "b": 2})) == plain
    assert canonical(encoded({Name("of its own"): 1, "b": 2})) == once


def test_no_text_has_what_a_database_refuses_or_json_changes() -> None:
    text = canonical(
        encoded({"a\0b": "c\0d\ud83d\ude00", "e": [math.inf, -0.0, 1e300, 2**70, Decimal("1.10")]})
    )
    assert text.isascii()
    assert [one for one in ("\0", "\\ud83d", "Infinity") if one in text] == []


@pytest.mark.parametrize("value", [object(), {1, 2}])
def test_what_cannot_be_held_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(
        BadInput, match=r"^state\.calls\[1\]: a \w+ cannot be stored in a checkpoint; expected strings, .*"
    ):
        encoded({"calls": [1, value]})


@table_test(
    "told", [{"$": "pickle", "v": "x"}, {"$": "bytes", "v": "§"}, {"$": "tuple"}, {"$": "mapping", "v": [1]}]
)
def test_a_tag_that_was_never_written_is_damage(told: Any) -> None:
    with pytest.raises(Damaged, match=r"^the store has an invalid value: "):
        decoded(told)


def test_more_levels_than_a_checkpoint_holds_are_refused_and_not_a_recursion_error() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    with pytest.raises(BadInput, match="nested more than 200 levels deep, which a checkpoint cannot store"):
        encoded(deep)
