from __future__ import annotations

import collections
import datetime
import enum
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.llm_repr import format_print_arg, llm_repr
from tests.tables import table_test


class Plain:
    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)


class Slotted:
    __slots__ = ("a",)


class Own:
    def __llm_repr__(self) -> str:
        return "own!"


class OwnWithOptions:
    def __llm_repr__(self, **options: Any) -> str:
        return f"own{sorted(options.items())}"


class ShowsItself:
    def __init__(self) -> None:
        self.shown = 1
        self.secret = 2

    def __llm_repr__(self, **options: Any) -> str:
        return llm_repr(self, hide=["secret"])


class Worded:
    def __str__(self) -> str:
        return "worded"


class OnlyRepr:
    def __repr__(self) -> str:
        return "never shown"


@dataclass
class Item:
    id: int = 1
    name: str = "x"
    parts: list[int] = field(default_factory=lambda: [1, 2])
    owner: object = None


class Colour(enum.Enum):
    RED = 1


NOON = datetime.datetime(2024, 1, 2, 12, 30)
PAIR = collections.namedtuple("PAIR", "a b")


@table_test(
    ("value", "shown"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        (Decimal("1.50"), "1.50"),
        ("as it is", "as it is"),
        ('in "quotes"', 'in "quotes"'),
        (["a", 1], '["a",1]'),
        (("a",), '("a")'),
        ((), "()"),
        ({"k": [1, {"m": None}]}, '{"k":[1,{"m":None}]}'),
        ({(1, 2): "t", None: 1, NOON: 2}, '{<Tuple of 2 items>:"t",None:1,datetime("2024-01-02 12:30"):2}'),
        ({10, 9, 1}, "{1,10,9}"),
        (frozenset({"b", "a"}), '{"a","b"}'),
        (NOON, 'datetime("2024-01-02 12:30")'),
        (NOON.date(), "2024-01-02"),
        ([NOON.date(), Fraction(1, 2), Colour.RED], "[2024-01-02,1/2,Colour.RED]"),
        (b"a", "b'a'"),
        (2j, "<Object>"),
        (range(3), "<Object>"),
        (len, "<Object>"),
        (int, "<Object>"),
        (PAIR(1, "x"), '(1,"x")'),
        (collections.OrderedDict(a=1), '{"a":1}'),
        (collections.deque([1]), "<Object>"),
        (ValueError("bad"), "bad"),
        (Plain(), "Plain()"),
        (
            Plain(a=1, b="x", c=Plain(), d=[1, 2], e=None),
            'Plain(a=1,b="x",c=<Object>,d=<List of 2 items>,e=None)',
        ),
        (Slotted(), "<Object>"),
        (Own(), "own!"),
        ([Own(), Worded()], "[own!,worded]"),
        (OwnWithOptions(), "own[('is_nested', False)]"),
        ([OwnWithOptions()] * 2, "[own[('repeated', False)],own[('repeated', True)]]"),
        (ShowsItself(), "ShowsItself(shown=1)"),
        (Worded(), "worded"),
        (OnlyRepr(), "OnlyRepr()"),
        (Item(), 'Item(id=1,name="x",parts=<List of 2 items>,owner=None)'),
        (lambda: 1, "function()"),
        ([Plain(a=1, b=Plain())] * 2, "[Plain(a=1,b=<Object>),Plain(a=1,...)]"),
        ([[Plain(b=Plain())], [Plain(b=Plain())]], "[[Plain(b=<Object>)],[Plain(...)]]"),
        ({"x": Plain(b=Plain()), "y": Plain(b=Plain())}, '{"x":Plain(b=<Object>),"y":Plain(...)}'),
    ],
)
def test_a_value_is_shown_as_statek_shows_it(value: object, shown: str) -> None:
    assert llm_repr(value) == shown


def test_long_collections_end_in_their_length() -> None:
    numbers = ",".join(map(str, range(25)))
    assert llm_repr(list(range(25))) == f"[{numbers}]"
    assert llm_repr(list(range(26))) == f"[{numbers}, ...] (26 items total)"
    assert llm_repr(tuple(range(30))) == f"({numbers}, ...) (30 items total)"
    assert llm_repr(dict.fromkeys(range(26), 0)).endswith(",24:0, ...} (26 items total)")
    assert llm_repr([1, 2, 3], max_len=2) == "[1,2, ...] (3 items total)"


def test_members_can_be_hidden_chosen_and_expanded() -> None:
    item = Item(owner=Plain(name="ada"))
    assert llm_repr(item, hide=["parts", "owner"]) == 'Item(id=1,name="x")'
    assert llm_repr(item, show_only=["id", "parts"], hide=["parts"]) == "Item(id=1)"
    assert (
        llm_repr(item, expand=["owner", "parts"]) == 'Item(id=1,name="x",parts=[1,2],owner=Plain(name="ada"))'
    )
    assert llm_repr(item, repeated=True) == 'Item(id=1,name="x",parts=<List of 2 items>,...)'
    assert llm_repr("x", is_nested=True) == '"x"'


def test_hidden_members_are_not_even_read() -> None:
    @dataclass
    class Guarded:
        open: int = 1
        closed: int = 2

        def __getattribute__(self, name: str) -> object:
            if name == "closed":
                raise AssertionError(name)
            return object.__getattribute__(self, name)

    assert llm_repr(Guarded.__new__(Guarded), hide=["closed"]) == "Guarded(open=1)"


def test_print_shows_text_raw_even_when_it_is_a_subclass() -> None:
    class Text(str):
        def __str__(self) -> str:
            return "other"

    assert format_print_arg(Text("raw")) == "raw"
    assert format_print_arg(["raw"]) == '["raw"]'


def test_addresses_do_not_show() -> None:
    class Handle:
        def __str__(self) -> str:
            return "<handle at 0x7f00aa>"

    assert llm_repr([Handle()]) == "[<handle at 0x...>]"


def test_a_value_that_contains_itself_is_a_recursion_error() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        llm_repr(endless)


def test_a_value_with_too_many_parts_is_stopped_and_charged() -> None:
    doubled: object = 1
    for _ in range(60):
        doubled = [doubled, doubled]
    with pytest.raises(BudgetExceeded, match="more than 50,000 items"):
        llm_repr(doubled)
    budget = ExecutionBudget(loop_iterations=5_000)
    with pytest.raises(BudgetExceeded, match="more than 5,000 loop iterations"):
        llm_repr(doubled, budget=budget)
