"""The language of eval files: what it says, and what it cannot be made to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.evals.expression import (
    BadExpression,
    Unanswerable,
    evaluate,
    filled,
    names_in,
    resolved,
)
from tests.tables import table_test

ROWS = [{"id": "a", "n": 3}, {"id": "b", "n": 5}]


@table_test(
    ("source", "value"),
    [
        ("one(rows, id='b').n", 5),
        ("most(rows, 'n').id", "b"),
        ("[r.id for r in rows if r.n > 3]", ["b"]),
        ("total(rows, 'n') + 1", 9),
        ("round(0.1 + 0.2)", 0.3),
        ("before(after('x is 7.', 'is '), '.')", "7"),
        ("rows[0].n * 2 % 4", 2),
        ("{'a': 1}['a'] if some(rows, id='a') else 0", 1),
        ("[a + str(b) for a, b in zip(['x'], [1])]", ["x1"]),
        ("joined(by(rows, 'n', True)[0])", "id, n"),
    ],
)
def test_an_expression_has_its_value(source: str, value: object) -> None:
    assert evaluate(source, {"rows": ROWS}) == value


@table_test(
    "source",
    [
        "().__class__",
        "rows.__len__()",
        "_member(rows, 'x')",
        "__import__('os')",
        "open('x')",
        "getattr(rows, 'x')",
        "rows.append(1)",
        "lambda: 1",
        "2 ** 99999999",
        "f'{rows}'",
        "(x := 1)",
        "[*rows]",
        "str.format",
        "{r for r in rows}",
        "max(rows, key=len) if (yield) else 1",
    ],
)
def test_what_is_no_part_of_the_language_is_refused_before_it_runs(source: str) -> None:
    with pytest.raises((BadExpression, Unanswerable)):
        evaluate(source, {"rows": ROWS})


@pytest.mark.parametrize("source", ["'a' * 1000000000", "'%999999999d' % 1", "[0] * 1000000000"])
def test_texts_and_lists_cannot_be_made_large(source: str) -> None:
    with pytest.raises(Unanswerable, match=r"expected two numbers$"):
        evaluate(source, {})


@given(st.text(alphabet="rows[]().'=+*% 01abc,{}:_iforn", max_size=40))
def test_any_text_is_an_expression_or_is_refused(source: str) -> None:
    try:
        evaluate(source, {"rows": ROWS})
    except (BadExpression, Unanswerable):
        return


@given(st.text(max_size=40))
def test_doubled_braces_are_braces(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert filled(doubled, {}) == text


def test_a_value_is_resolved_all_the_way_down() -> None:
    value = {"all": "=[r.id for r in rows]", "text": ["n is {rows[0].n}", 7, None]}
    assert resolved(value, {"rows": ROWS}) == {"all": ["a", "b"], "text": ["n is 3", 7, None]}
    assert names_in(value) == {"rows"}


def test_a_key_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(Unanswerable, match=r"^no key 'm'; available: id, n$"):
        evaluate("rows[0].m", {"rows": ROWS})


def test_a_function_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(BadExpression, match=r"unknown function 'wher'. Did you mean 'where'\?$"):
        evaluate("wher(rows)", {"rows": ROWS})
