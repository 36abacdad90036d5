"""Definitions of tools, the registry and its lint, arguments and their coercions."""

from __future__ import annotations

import itertools
import json
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from statek_sim.agent.effects import ToolContext, ToolFunction, WrittenCall
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.replies.calls import Refusal, resolved
from statek_sim.agent.replies.nudges import Failure
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.agent.tools.registry import Registry, lint
from statek_sim.agent.tools.tool import Tool, api_format, result_text, tool_from, tool_of_schema
from statek_sim.errors import BadInput, BadTool
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.request import FormatName
from statek_sim.rescue import rescue
from statek_sim.server.refusals import refusals
from statek_sim.values import JSON
from tests.says import line_with
from tests.tables import table_test


def nothing() -> None:
    """Do nothing."""


def anything(**arguments: object) -> None:
    """Take whatever comes."""


def named(name: str, *tags: str, description: str = "Do something of its own.") -> Tool:
    return tool_of_schema(name, description, {"type": "object", "properties": {}}, nothing, tags=tags)


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


def order(
    item: str,
    count: int = 1,
    size: Size = Size.SMALL,
    menu: Literal["a", "b"] | None = None,
    notes: list[str] | None = None,
    price: Annotated[float, Field(gt=0)] = 1.0,
    context: object = None,
) -> str:
    """Order something.

    It takes a while.

    Args:
        item: What to order,
            in one word.
        count: How many.

    Returns:
        A receipt.
    """
    return item


# -- definitions ------------------------------------------------------------------------------------------------


def test_a_function_says_what_the_model_reads() -> None:
    tool = tool_from(order, tags=["shop"])
    assert (tool.name, tool.description, tool.tags) == (
        "order",
        "Order something. It takes a while.",
        ("shop",),
    )
    properties: Any = tool.parameters["properties"]
    assert list(properties) == ["item", "count", "size", "menu", "notes", "price"]
    assert properties["item"] == {"type": "string", "description": "What to order, in one word."}
    assert properties["count"] == {"type": "integer", "default": 1, "description": "How many."}
    assert tool.parameters["required"] == ["item"]
    assert tool.parameters["additionalProperties"] is False
    assert "title" not in json.dumps(tool.parameters)


def test_a_parameter_that_is_called_title_stays() -> None:
    def publish(title: str) -> None:
        """Publish.

        :param title: The headline.
        """

    assert tool_from(publish).parameters["properties"] == {
        "title": {"type": "string", "description": "The headline."}
    }


def test_a_parameter_that_cannot_be_named_is_refused() -> None:
    def spread(*items: str) -> None: ...

    with pytest.raises(BadTool, match=line_with("tool 'spread'", "'items'", "variadic positional")):
        tool_from(spread)


def test_names_that_pydantic_keeps_for_itself_are_names_of_parameters() -> None:
    def copy_table(_from: str, schema: str, model_config: int = 1) -> str:
        """Copy."""
        return f"{_from} {schema} {model_config}"

    with warnings.catch_warnings(action="error"):
        tool = tool_from(copy_table)
    assert list(tool.parameters["properties"]) == ["_from", "schema", "model_config"]  # type: ignore[arg-type]
    assert tool.parameters["required"] == ["_from", "schema"]
    script = [tool_call("copy_table", _from="a", schema="b"), text("done")]
    assert AgentHarness(ScriptedLLM(script), tools=[tool]).run("Work.").calls[0]["result"] == "a b 1"


def test_a_default_that_is_no_json_is_not_sent() -> None:
    def wait(most: float = float("inf"), until: object = object()) -> None: ...

    with warnings.catch_warnings(action="error"):
        parameters = tool_from(wait).parameters
    assert parameters["properties"] == {"most": {"type": "number"}, "until": {}}
    assert "required" not in parameters


def test_parameters_that_cannot_be_read_are_refused() -> None:
    def use(thing: str) -> None: ...

    use.__annotations__ = {"thing": "Nowhere"}
    with pytest.raises(BadTool, match=line_with("tool 'use'", "parameters", "'Nowhere'")):
        tool_from(use)
    with pytest.raises(BadTool, match=line_with("tool 'dict'", "parameters", "signature")):
        tool_from(dict)


def test_a_hint_without_a_schema_is_refused() -> None:
    class Opaque: ...

    def use(thing: Opaque) -> None: ...

    use.__annotations__ = {"thing": Opaque}
    with pytest.raises(BadTool, match=line_with("tool 'use'", "type hints", "JSON Schema")):
        tool_from(use)


class Line(BaseModel):
    text: str
    size: Size = Size.SMALL
    marks: list[Literal["a", "b"]] = []
    below: list[Line] = []


@table_test(
    "hint",
    [
        Line, list[Line], dict[str, Line], Line | None, Size, Literal["a", 1], list, list[list[Any]], dict, Any,
        set[str], tuple[int, str], tuple[int, ...], tuple, list[tuple[float, float]] | None, date, datetime, UUID,
        Decimal, int | str | None, Annotated[list[int], Field(min_length=1)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("wire", FORMATS)
def test_every_provider_takes_the_schemas_of_tools(wire: FormatName, hint: Any) -> None:
    def use(first: Any, second: Any = None) -> None: ...

    use.__annotations__ |= {"first": hint, "second": hint | None if hint is not Any else hint}
    tools = api_format([tool_from(use)], "openai")
    request: Any = SimpleNamespace(model="gemini-3-pro", messages=[], tools=tools, temperature=None)
    assert list(refusals(wire, FORMATS[wire].request_body(request), request.model)) == []


def test_a_given_schema_is_copied() -> None:
    schema: dict[str, JSON] = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = tool_of_schema("t", "T.", schema, anything)
    properties: Any = schema["properties"]
    properties["a"]["type"] = "integer"
    assert tool.parameters["properties"] == {"a": {"type": "string"}}


def _declared(*names: str, **more: JSON) -> dict[str, JSON]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, **more}


def weather(city: str, context: ToolContext, days: int = 1) -> str:
    """Say how it is."""
    return city * days


@table_test(
    ("declared", "code", "facts"),
    [
        (_declared("ctiy"), weather, ("schema has ctiy", "weather(city, days)", "'city'?")),
        (_declared("city", "context"), weather, ("schema has context",)),
        (_declared("days"), weather, ("weather requires city", "schema", "(days)")),
        (_declared("x"), len, ("schema has x", "len()")),
    ],
)
def test_code_that_cannot_take_what_its_schema_says_is_refused(
    declared: dict[str, JSON], code: ToolFunction, facts: tuple[str, ...]
) -> None:
    with pytest.raises(BadTool, match=line_with("tool 't'", *facts)):
        tool_of_schema("t", "T.", declared, code)


@table_test(
    ("declared", "code"),
    [
        (_declared("city"), weather),
        (_declared("city", "days"), weather),
        (_declared("whatever"), anything),
        (_declared(allOf=[{"$ref": "#/$defs/place"}]), weather),
        (_declared("city"), partial(weather, days=2)),
        ({"type": "object"}, weather),
        (_declared("x"), type("Waits", (), {"__call__": lambda self, x: x})()),
    ],
)
def test_code_that_takes_what_its_schema_says_is_a_tool(
    declared: dict[str, JSON], code: ToolFunction
) -> None:
    assert tool_of_schema("t", "T.", declared, code).parameters == declared


@table_test(
    ("value", "shown"),
    [
        ("text", "text"),
        (None, "null"),
        (3, "3"),
        ({"a": (1, 2)}, '{"a":[1,2]}'),
        (Size.LARGE, "l"),
        (b"x", '"x"'),
        ([1e-7, 1e22, -0.0], "[1e-07,1e+22,-0.0]"),
        ({"a": [float("nan")], "b": float("inf")}, '{"a":[null],"b":null}'),
        ([deque([2, 1]), Fraction(1, 3)], '[[2,1],"1/3"]'),
        (["\ud800"], "['\\ud800']"),
    ],
)
def test_a_result_is_text_or_json(value: object, shown: str) -> None:
    assert result_text(value) == shown


def test_a_result_that_only_its_address_tells_apart_is_told_without_it() -> None:
    class Handle: ...

    def opened() -> Handle:
        return Handle()

    def fails() -> None:
        raise ValueError(Handle())

    script = [tool_call("opened"), tool_call("fails"), text("done")]
    calls = AgentHarness(ScriptedLLM(script), tools=[opened, fails]).run("Work.").calls
    assert [str(call.get("result") or call["error"]).rpartition(" ")[2] for call in calls] == ["0x...>"] * 2


def test_what_generators_raise_is_the_tools_own_and_what_nobody_reads_is_no_result() -> None:
    def counts() -> Iterator[int]:
        yield 1
        raise ValueError("no two")

    async def counts_later() -> AsyncIterator[int]:
        yield 1

    script = [tool_call("counts"), tool_call("counts_later"), text("done")]
    calls = AgentHarness(ScriptedLLM(script), tools=[counts, counts_later]).run("Work.").calls
    assert [call["error"] for call in calls] == [
        "ValueError: no two",
        "TypeError: its result is an async generator, which is never read; return its items",
    ]


def test_an_exception_whose_words_raise_is_a_result() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fails() -> None:
        raise Odd

    run = AgentHarness(ScriptedLLM([tool_call("fails"), text("done")]), tools=[fails]).run("Work.")
    assert run.calls[0]["error"] == "Odd: its message raised RuntimeError"


def test_a_result_that_is_no_json_is_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert result_text(Odd()) == "odd"


@dataclass
class Found:
    """What a tool may return."""

    tags: set[str]
    pairs: list[frozenset[tuple[str, int]]]


@dataclass(frozen=True)
class Place:
    x: int
    names: frozenset[str] = frozenset()


SETS = {
    "of dataclasses": (
        {Place(2), Place(1, frozenset("ba"))},
        '[{"x":1,"names":["a","b"]},{"x":2,"names":[]}]',
    ),
    "a set": (set("bca"), '["a","b","c"]'),
    "nested": ({"of": [frozenset({3, 10, 1})]}, '{"of":[[1,10,3]]}'),
    "a set of sets": ({frozenset("ba"), frozenset("c")}, '[["a","b"],["c"]]'),
    "in a dataclass": (
        Found({"y", "x"}, [frozenset({("b", 1), ("a", 2)})]),
        '{"tags":["x","y"],"pairs":[[["a",2],["b",1]]]}',
    ),
    "in what is no JSON": ({frozenset("ba"): {"d", "c"}}, "{frozenset({'a', 'b'}): {'c', 'd'}}"),
}


@table_test(("value", "shown"), SETS.values(), ids=SETS)
def test_a_set_is_in_the_same_order_whatever_the_hashes_are(value: object, shown: str) -> None:
    assert result_text(value) == shown


# -- the registry -----------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_is_refused() -> None:
    registry = Registry([named("look")])
    with pytest.raises(BadTool, match=line_with("tool 'look'", "already registered")):
        registry.register(named("look"))


def test_tools_come_in_the_order_in_which_they_were_registered() -> None:
    registry = Registry([named("b"), named("a")])
    assert [tool.name for tool in registry.list()] == ["b", "a"]


def test_a_tool_that_is_gone_is_not_offered_any_more() -> None:
    registry = Registry([named("look"), named("tell")])
    before = registry.offer()
    registry.unregister("look")
    after = registry.offer()
    assert (before.names, after.names) == (("look", "tell"), ("tell",))
    assert after.generation > before.generation
    with pytest.raises(BadTool, match=r"^tool 'look' is not registered"):
        registry.unregister("look")


def test_the_same_request_gives_the_same_offer_until_something_changes() -> None:
    registry = Registry([named("look", "read")])
    assert registry.offer(all_tags=["read"]) is registry.offer(all_tags=["read"])
    registry.register(named("tell", "read"))
    assert registry.offer(all_tags=["read"]).names == ("look", "tell")
    assert registry.offer(without={"tell"}).names == ("look",)
    assert registry.offer(without={"tell"}) is registry.offer(without=frozenset({"tell"}))


def test_an_empty_filter_and_an_unknown_task_are_errors() -> None:
    tasks = {"read": ["look", "gone"]}
    registry = Registry([named("look")], task_types=tasks)
    with pytest.raises(BadTool, match=r"empty tag list"):
        registry.offer(all_tags=[])
    with pytest.raises(BadTool, match=line_with("task type 'raed'", "'read'?")):
        registry.offer(task="raed")
    with pytest.raises(BadTool, match=line_with("task type 'read'", "unregistered", "gone")):
        registry.offer(task="read")


def test_a_schema_that_is_none_is_refused_where_it_is_registered() -> None:
    broken = replace(named("look"), parameters={"type": "object", "properties": {"a": {"type": "txt"}}})
    place = "parameters['properties']['a']['type']"
    with pytest.raises(BadTool, match=line_with("tool 'look'", place, "invalid JSON Schema")):
        Registry([broken])


def test_lint_says_what_makes_tools_hard_to_choose() -> None:
    tools = [
        named("look_up_order", description="Look up an order of a customer."),
        named("find_order", description="Look up an order of a customer"),
        named("SendMail"),
        named("bad name!"),
        replace(tool_from(order), description=" "),
    ]
    assert [(found.tool, found.rule) for found in lint(tools)] == [
        ("SendMail", "name"),
        ("bad name!", "name"),
        ("order", "description"),
        ("order", "parameter"),
        ("order", "parameter"),
        ("order", "parameter"),
        ("order", "parameter"),
        ("find_order", "overlap"),
        ("bad name!", "overlap"),
    ]
    assert lint([replace(named("wiki__get-all"), server="wiki")]) == ()
    many = [named(f"tool_{number}", description="") for number in range(20)]
    assert str(lint(many)[0]) == "tools: too-many: 20 tools are offered together, expected under 20"


# -- arguments --------------------------------------------------------------------------------------------------

FLAT: dict[str, JSON] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}, "sure": {"type": "boolean"}},
    "required": ["name"],
    "additionalProperties": False,
}

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, width=16),
    st.text(max_size=3),
    st.just([]),
)


@given(st.dictionaries(st.sampled_from(["name", "count", "sure", "more"]), VALUES))
def test_the_short_way_accepts_nothing_that_the_schema_refuses(arguments: dict[str, JSON]) -> None:
    checked = ArgumentCheck("t", FLAT).check(arguments, coerce=False)
    assert (not checked.problems) is Draft202012Validator(FLAT).is_valid(arguments)


@given(
    st.dictionaries(
        st.sampled_from(["name", "count", "sure"]), VALUES | st.sampled_from(["7", "true", "x", "1.5"])
    )
)
def test_what_is_coerced_fits_the_schema_and_nothing_else_changes(arguments: dict[str, JSON]) -> None:
    checked = ArgumentCheck("t", FLAT).check(arguments, coerce=True)
    if not checked.problems:
        assert Draft202012Validator(FLAT).is_valid(dict(checked.arguments))
    changed = {
        f"arguments.{name}" for name, value in arguments.items() if checked.arguments[name] is not value
    }
    assert changed <= set(checked.coerced) | {
        f"arguments.{n}" for n, v in arguments.items() if checked.arguments[n] == v
    }


def test_what_is_converted_has_members_that_are_converted_too() -> None:
    numbers: JSON = {"type": "array", "items": {"type": "integer"}}
    check = ArgumentCheck("t", {"type": "object", "properties": {"rows": numbers}})
    found = check.check({"rows": '["1", 2.0]'}, coerce=True)
    assert (found.arguments, found.problems) == ({"rows": [1, 2]}, ())
    assert all(type(number) is int for number in found.arguments["rows"])  # type: ignore[union-attr]
    assert found.coerced == ("arguments.rows", "arguments.rows[0]", "arguments.rows[1]")


@table_test(
    ("schema", "value", "becomes"),
    [
        ({"type": "integer"}, 4.0, int),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 4.0, int),
        ({"type": ["integer", "number"]}, 4.0, float),
        ({"type": "number"}, 4.0, float),
        ({"type": "integer"}, 1e300, float),
        ({}, 4.0, float),
        ({"oneOf": [{"type": "string"}, {"not": {"type": "string"}}]}, 4.0, float),
    ],
)
def test_a_whole_number_with_a_point_is_one_for_python_where_an_integer_is_wanted(
    schema: JSON, value: float, becomes: type
) -> None:
    check = ArgumentCheck("t", {"type": "object", "properties": {"count": schema}})
    made = check.check({"count": value}, coerce=True)
    assert (made.problems, made.arguments, type(made.arguments["count"])) == ((), {"count": value}, becomes)
    untouched = check.check({"count": value}, coerce=False)
    assert (untouched.problems, type(untouched.arguments["count"])) == ((), float)


@pytest.mark.parametrize("schema", [True, {"type": "array"}, {"type": ["string", "null"]}])
def test_parameters_that_take_no_object_are_refused(schema: Any) -> None:
    with pytest.raises(BadTool, match=line_with("tool 't'", "parameters", "objects", "schema")):
        ArgumentCheck("t", schema)


@table_test("text", ["1_0", "٣", "0x10", "1.5", "007", "+5", "", " ", "--1", "9" * 30])
def test_what_only_python_takes_for_a_whole_number_is_refused(text: str) -> None:
    assert ArgumentCheck("t", FLAT).check({"name": "a", "count": text}, coerce=True).problems


NOWHERE: dict[str, dict[str, JSON]] = {
    "another document": {"properties": {"a": {"$ref": "https://example.invalid/schema"}}},
    "no such definition": {"properties": {"a": {"items": {"$ref": "#/$defs/gone"}}}},
    "no such anchor": {"$ref": "#gone"},
    "behind a reference": {
        "properties": {"a": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"anyOf": [{"$ref": "#/$defs/c"}]}},
    },
    "in a place of its own": {"$ref": "#/there", "there": {"$ref": "#/gone"}},
    "dynamic": {"properties": {"a": {"$dynamicRef": "#gone"}}},
}


@table_test("schema", NOWHERE.values(), ids=NOWHERE)
def test_a_reference_that_leads_nowhere_is_refused_where_the_tool_is_registered(
    schema: dict[str, JSON],
) -> None:
    said = (
        r"^tool 'look': parameters: \$ref '[^']+' cannot be resolved; expected a reference inside the schema"
    )
    with pytest.raises(BadTool, match=said):
        Registry([replace(named("look"), parameters={"type": "object", **schema})])


def test_a_reference_into_the_schema_is_followed() -> None:
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": {
            "size": {"$ref": "#/$defs/size"},
            "inner": {"$ref": "#"},
            "k": {"const": {"$ref": "#/x"}},
        },
        "$defs": {"size": {"type": "integer"}},
    }
    check = ArgumentCheck("t", schema)
    assert check.check({"inner": {"size": "7"}}, coerce=True).arguments == {"inner": {"size": 7}}
    assert check.check({"inner": {"size": "x"}}, coerce=True).problems


# -- one meaning on the wire and in text ------------------------------------------------------------------------

TYPES: list[dict[str, JSON]] = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "string"},
    {"type": "null"},
    {"type": ["integer", "null"]},
    {"anyOf": [{"type": "number"}, {"type": "null"}]},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "object", "properties": {"in": {"type": "boolean"}}},
    {"enum": [1, 2]},
    {"$ref": "#/$defs/kind"},
    {},
]
WRITTEN = st.one_of(
    VALUES,
    st.sampled_from(["1", "1.0", "1e3", "007", "+5", " 2 ", "-0", "1.", "0x10", "1_0", "1e999", "NaN"]),
    st.sampled_from(["true", "TRUE", "null", "None", "[1]", "[1, 1e999]"]),
    st.sampled_from(['{"in": true}', '{"in": 1, "in": 2}', '["1"]', "9" * 30]),
)


@given(st.sampled_from(TYPES), WRITTEN | st.lists(WRITTEN, max_size=2), st.booleans())
def test_a_call_means_the_same_on_the_wire_and_in_text(kind: JSON, value: JSON, nested: bool) -> None:
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": {"a": kind},
        "$defs": {"kind": {"type": "integer"}},
    }
    arguments: dict[str, JSON] = {"a": value}
    if nested:
        schema = {**schema, "properties": {"o": {"type": "object", "properties": {"a": kind}}}}
        arguments = {"o": {"a": value}}
    wire = ArgumentCheck("t", schema).check(arguments, coerce=True)
    written = json.dumps({"name": "t", "arguments": arguments})
    text = rescue(written, {"t": schema}, coerce=True)
    assert [dict(call.arguments) for call in text.calls] == ([] if wire.problems else [wire.arguments])


@table_test("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 30, "9" * 5000])
def test_a_number_that_no_float_or_64_bits_hold_is_refused_on_the_wire_and_in_text(number: str) -> None:
    schema: dict[str, JSON] = {"type": "object", "properties": {"a": {"type": "number"}}}
    registry = Registry([tool_of_schema("t", "T.", schema, anything)])
    arguments = f'{{"a": {number}}}'
    found = resolved(WrittenCall("1", "t", arguments), registry.offer(), registry)
    assert isinstance(found, Refusal)
    assert found.failure is Failure.INVALID_JSON
    text = rescue(f'{{"name": "t", "arguments": {arguments}}}', registry.offer().schemas)
    assert not text.calls
    assert text.refused[0].why in found.reason


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Parcel(BaseModel):
    weight: Decimal
    sent: date


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    pair: tuple[int, int]


class Ticket(TypedDict):
    due: datetime


@dataclass
class Address:
    street: str
    moved: date | None = None


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("odd")
    return number


def typed(
    colour: Colour,
    where: Address,
    when: date,
    at: datetime,
    key: UUID,
    price: Decimal,
    parcels: list[Parcel],
    ticket: Ticket,
    size: Literal["s", "m"],
    pair: tuple[int, date],
    tags: set[str],
    even: Annotated[int, AfterValidator(_even)],
    maybe: date | None = None,
) -> str:
    """Say what came."""
    values = colour, where, when, at, key, price, parcels[0], ticket["due"], size, pair[1], tags, even, maybe
    return " ".join(type(value).__name__ for value in values)


TYPED: Final[dict[str, Any]] = {
    "colour": "red",
    "where": {"street": "Long Lane", "moved": "2024-01-02"},
    "when": "2024-01-02",
    "at": "2024-01-02T03:04:05Z",
    "key": "12345678-1234-5678-1234-567812345678",
    "price": "1.50",
    "parcels": [{"weight": "2.5", "sent": "2024-01-02"}],
    "ticket": {"due": "2024-01-02T03:04:05Z"},
    "size": "s",
    "pair": [1, "2024-01-02"],
    "tags": ["a"],
    "even": 2,
    "maybe": "2024-01-02",
}


def test_a_function_is_given_the_values_that_its_hints_promise() -> None:
    script = [tool_call("typed", **TYPED), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[typed]).run("Work.")
    assert run.calls[0]["result"] == (
        "Colour Address date datetime UUID Decimal Parcel datetime str date set int date"
    )


def test_a_strict_model_reads_the_json_of_a_call_and_a_test_may_give_values() -> None:
    def book(order: Strict, day: date) -> str:
        return f"{order.day:%d.%m.} {order.pair} {day:%d.%m.}"

    script = [tool_call("book", order={"day": "2024-01-02", "pair": [1, 2]}, day="2024-03-04"), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[book]).run("Work.")
    assert run.calls[0]["result"] == "02.01. (1, 2) 04.03."
    strict = Strict(day=date(2024, 1, 2), pair=(1, 2))
    assert tool_from(book).run(order=strict, day=date(2024, 3, 4)) == "02.01. (1, 2) 04.03."


def test_sets_that_hints_promise_are_in_one_order_under_every_hash_seed() -> None:
    words = [f"word-{number}" for number in range(30)]

    def joined(tags: set[str], names: frozenset[str]) -> str:
        return " ".join([*tags, *names])

    run = tool_from(joined).run
    assert run(tags=words, names=words) == " ".join([*sorted(words), *sorted(words)])
    assert run(tags=words[::-1], names=words) == run(tags=words, names=words)


@table_test(
    ("wrong", "reason"),
    [
        ({"when": "soon"}, "arguments.when: expected a valid date or datetime, "),
        (
            {"parcels": [{"weight": "2.5", "sent": "never"}]},
            "arguments.parcels[0].sent: expected a valid date",
        ),
        ({"where": {"street": "Long Lane", "moved": "x"}}, "arguments.where.moved: expected a valid date"),
        ({"key": "12"}, "arguments.key: expected a valid UUID"),
        ({"even": 3}, "arguments.even: value error, odd, got 3"),
        ({"colour": "green"}, "arguments.colour: expected one of "),
    ],
    ids=["date", "in a list", "in a dataclass", "uuid", "validator", "enum"],
)
def test_what_cannot_be_what_a_hint_promises_is_refused_with_its_path(
    wrong: dict[str, Any], reason: str
) -> None:
    script = [tool_call("typed", **(TYPED | wrong)), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[typed]).run("Work.")
    assert [call["failure"] for call in run.refused] == ["invalid_arguments"]
    assert run.refused[0]["reason"].startswith(f"Error: {reason}")
    assert not run.calls


def test_arguments_stay_json_for_the_trace_and_the_checks() -> None:
    def book(day: date) -> str:
        return f"{day:%d.%m.}"

    run = AgentHarness(ScriptedLLM([tool_call("book", day="2024-01-02"), text("done")]), tools=[book]).run(
        "Work."
    )
    assert run.calls == [{"name": "book", "arguments": "day='2024-01-02'", "via": "call", "result": "02.01."}]


@table_test(
    "endless",
    [
        itertools.count,
    ],
    ids=["numbers"],
)
def test_an_endless_result_is_an_error_that_the_model_reads(endless: Callable[[], object]) -> None:
    def forever() -> object:
        return endless()

    async def later() -> object:
        return endless()

    script = [tool_call("forever"), tool_call("later"), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[forever, later]).run("Work.")
    assert run.answer == "done"
    for call in run.calls:
        assert str(call["error"]).startswith("TypeError: its result is an iterator of more than ")


def test_what_an_iterable_gives_may_be_read_twice_and_counted() -> None:
    def count(words: Iterable[str], days: Iterable[date] | None = None) -> str:
        return f"{len(list(words))} {len(list(words))} {days!r}"

    script = [tool_call("count", words=["a", "b"], days=["2024-01-02"]), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[count]).run("Work.")
    assert run.calls[0]["result"] == "2 2 [datetime.date(2024, 1, 2)]"


def test_half_a_pair_of_surrogates_is_a_text_in_a_sequence_and_in_a_tuple() -> None:
    def shown(words: Sequence[str], pair: tuple[str, ...]) -> str:
        return ascii((words, pair))

    script = [tool_call("shown", words=["\ud800"], pair=["\ud800"]), text("done")]
    run = AgentHarness(ScriptedLLM(script), tools=[shown]).run("Work.")
    assert [call["result"] for call in run.calls] == [r"(['\ud800'], ('\ud800',))"]


@table_test(
    ("api", "place"),
    [
        ("openai", ("function", "parameters")),
        ("responses", ("parameters",)),
        ("anthropic", ("input_schema",)),
        ("gemini", ("parametersJsonSchema",)),
        ("mcp", ("inputSchema",)),
    ],
)
def test_tools_are_listed_as_each_api_takes_them(api: str, place: tuple[str, ...]) -> None:
    schema: Any = {"type": "object", "properties": {"where": {"type": "string"}}}
    (listed,) = api_format([tool_of_schema("look", "Look.", schema, lambda where: where)], api)
    named = listed["function"] if api == "openai" else listed
    assert isinstance(named, dict)
    assert (named["name"], named["description"]) == ("look", "Look.")
    for key in place:
        listed = listed[key]  # type: ignore[assignment]
    assert listed == schema


def test_another_api_is_refused() -> None:
    formats = "openai, responses, anthropic, gemini or mcp"
    with pytest.raises(BadInput, match=line_with("api_format", "'soap'", formats)):
        api_format([], "soap")
