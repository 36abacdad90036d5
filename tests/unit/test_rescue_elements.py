"""Rescue parsing of tags: tags with other names, lists of Python calls, texts that may be something else."""

from __future__ import annotations

import pytest

from statek_sim.rescue import Reason, rescue
from statek_sim.values import JSON
from tests.tables import table_test

SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "list": {"type": "array"}},
}
TOOLS: list[dict[str, JSON]] = [{"name": "f", "parameters": SCHEMA}, {"name": "g", "parameters": {}}]
DSML = "\uff5cDSML\uff5c"
CALL = (
    f'<{DSML}tool_calls>\n<{DSML}invoke name="f">\n<{DSML}parameter name="city" string="true">X</{DSML}parameter>\n'
    f"</{DSML}invoke>\n</{DSML}tool_calls>"
)


def _calls(text: str, tools: list[dict[str, JSON]] | None = None) -> list[tuple[str, dict[str, JSON]]]:
    return [
        (call.name, dict(call.arguments)) for call in rescue(text, TOOLS if tools is None else tools).calls
    ]


@table_test(
    "text",
    [
        CALL,
        CALL.replace("DSML", "GCML"),
        f'<{DSML}function_calls><{DSML}invoke name="f">\n    {{"city": "X"}}\n</{DSML}invoke></{DSML}function_calls>',
        r"<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>X</arg_value>\n</tool_call>",
        '<|channel|>commentary to=f <|constrain|>json<|message|>{"city": "X"}<|call|>',
    ],
)
def test_one_call_in_tags_of_several_models(text: str) -> None:
    assert _calls(text) == [("f", {"city": "X"})]


def test_json_in_an_invoke_that_is_not_closed_is_cut() -> None:
    (refusal,) = rescue(f'<{DSML}invoke name="f">{{"city": "X"}}', TOOLS).refused
    assert refusal.reason is Reason.CUT


def test_a_recipient_that_no_tool_is_called_is_no_call() -> None:
    assert _calls('<|channel|>commentary to=python <|constrain|>json<|message|>{"city": "X"}<|call|>') == []


@pytest.mark.parametrize(
    "text",
    [f"Example:\n~~~xml\n{CALL}\n~~~\n", f"Example: `{CALL}`", f"Example:\n```xml\n{CALL}\n```"],
)
def test_code_over_several_lines_is_no_call(text: str) -> None:
    assert _calls(text) == []
    assert rescue(text, TOOLS, dialect="deepseek").calls == ()


def test_null_in_tags_is_refused_where_a_text_is_wanted() -> None:
    (refusal,) = rescue("<function=f><parameter=city>null</parameter></function>", TOOLS).refused
    assert refusal.reason is Reason.BROKEN


def test_what_a_tools_schema_does_not_describe_is_a_text_where_it_can_be_nothing_else() -> None:
    """Parsers of others are divided about the rest: a number or an object, or the text that says it."""
    for value in ("5", "true", '{"a": 1}', "{'a': [1]}"):
        text = f"<function=f><parameter=other>{value}</parameter></function>"
        assert rescue(text, TOOLS).refused[0].reason is Reason.BROKEN, value
        assert rescue(text).refused[0].reason is Reason.BROKEN, value
    assert _calls("<function=f><parameter=other>five</parameter></function>") == [("f", {"other": "five"})]


def test_a_type_that_there_is_not_decides_nothing() -> None:
    tool: dict[str, JSON] = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "thing"}}},
    }
    said = "<function=f><parameter=a>{}</parameter></function>".format
    assert rescue(said("{'a': 3}"), [tool]).refused[0].reason is Reason.BROKEN
    assert [call.arguments for call in rescue(said("x"), [tool]).calls] == [{"a": "x"}]


def test_quotes_around_a_text_of_glms_are_refused_and_around_a_number_taken_off() -> None:
    def said(key: str, value: str) -> str:
        return f"<tool_call>f<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"

    assert _calls(said("city", '"X"')) == []
    assert _calls(said("city", 'say "X"')) == [("f", {"city": 'say "X"'})]
    assert _calls(said("days", '"7"')) == [("f", {"days": 7})]


def test_a_schema_in_several_parts_says_what_an_argument_is() -> None:
    branches: JSON = [
        {"properties": {"kind": {"const": "text"}, "v": {"type": "string"}}},
        {"properties": {"kind": {"const": "count"}, "v": {"type": "integer"}}},
    ]
    tools: list[dict[str, JSON]] = [{"name": "f", "parameters": {"type": "object", "oneOf": branches}}]

    def said(kind: str) -> str:
        keys = {"kind": kind, "v": "7"}
        inside = "".join(f"<arg_key>{k}</arg_key><arg_value>{v}</arg_value>" for k, v in keys.items())
        return f"<tool_call>f{inside}</tool_call>"

    assert rescue(said("text"), tools).refused[0].reason is Reason.SCHEMA
    assert _calls(said("count"), tools) == [("f", {"kind": "count", "v": 7})]


def test_types_by_other_names_are_checked() -> None:
    tools: list[dict[str, JSON]] = [
        {
            "name": "f",
            "parameters": {"type": "dict", "properties": {"b": {"type": "bool"}, "type": {"type": "float"}}},
        }
    ]
    text = "<function=f><parameter=b>{}</parameter><parameter=type>2.5</parameter></function>"
    assert _calls(text.format("true"), tools) == [("f", {"b": True, "type": 2.5})]
    assert _calls(text.format("yes"), tools) == []


def test_an_identifier_alone_in_a_wrapper_is_a_call_where_any_name_is() -> None:
    assert [call.name for call in rescue("<tool_call>get_time</tool_call>").calls] == ["get_time"]
    assert rescue("<tool_call>look</tool_call>").calls == ()
