"""The wire format: bodies built here parse back, and broken bodies fail with STATEK's own texts.

The expected errors were printed by STATEK 1.4.2 (httpx 0.28.1) when its client was given the same bodies.
"""

from __future__ import annotations

import json

import pytest

from statek_sim.errors import InvalidFormat
from statek_sim.providers.wire.openai import read_reply, reply_body
from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    ToolCallRequest,
    WireReply,
    WireToolCall,
)
from statek_sim.values import JSON
from tests.tables import table_test


def with_message(message: JSON, **more: JSON) -> bytes:
    return json.dumps({"choices": [{"message": message}], **more}).encode()


def written(
    text: str | None, calls: tuple[WireToolCall, ...] = (), usage: ReportedUsage | None = NO_USAGE
) -> bytes:
    reply = WireReply(id="main-2", model="gpt-4o", created=1767258001, text=text, calls=calls, usage=usage)
    return reply_body(reply)


def with_call(call: JSON) -> bytes:
    return with_message({"content": None, "tool_calls": [call]})


def with_function(function: JSON) -> bytes:
    return with_call({"id": "c1", "type": "function", "function": function})


def with_usage(usage: JSON) -> bytes:
    return with_message({"content": "hi"}, usage=usage)


def test_a_plain_reply_has_text_no_calls_and_zero_usage_that_is_not_present() -> None:
    assert read_reply(with_message({"content": "hi"})) == ParsedReply("hi", (), NO_USAGE)
    assert ReportedUsage(prompt=0, completion=0, cached=0, cost=None, present=False) == NO_USAGE


@table_test("message", [{}, {"content": None}, {"content": ""}, {"content": []}])
def test_missing_content_reads_as_empty_text(message: dict[str, JSON]) -> None:
    assert read_reply(with_message(message)).text == ""


def test_tool_calls_are_read_in_order_with_decoded_arguments() -> None:
    body = with_message(
        {
            "content": "on it",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "t", "arguments": '{"x": [1.5, null]}'}},
                {"id": "b", "function": {"name": "u"}},
            ],
        }
    )
    assert read_reply(body).tool_calls == (
        ToolCallRequest("a", "t", {"x": [1.5, None]}),
        ToolCallRequest("b", "u", {}),
    )


def test_a_tool_call_in_the_anthropic_shape_is_understood_too() -> None:
    body = with_call({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"x": 1}})
    assert read_reply(body).tool_calls == (ToolCallRequest("toolu_1", "t", {"x": 1}),)


@pytest.mark.parametrize(("call_id", "read"), [(None, None), (5, 5), ("", "")])
def test_a_strange_tool_call_id_is_handed_back_as_it_came(call_id: JSON, read: JSON) -> None:
    body = with_call({"id": call_id, "function": {"name": "t", "arguments": "{}"}})
    assert read_reply(body).tool_calls[0].id == read


def test_a_missing_tool_call_id_reads_as_the_empty_string() -> None:
    assert read_reply(with_call({"function": {"name": "t"}})).tool_calls[0].id == ""


def test_reported_usage_is_read_with_cached_tokens_and_cost() -> None:
    usage: JSON = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 3},
        "cost": 0.25,
    }
    assert read_reply(with_usage(usage)).usage == ReportedUsage(prompt=5, completion=2, cached=3, cost=0.25)


def test_empty_usage_is_present_and_zero() -> None:
    assert read_reply(with_usage({})).usage == ReportedUsage(present=True)


def test_a_null_token_count_stays_none_because_statek_only_fails_when_it_adds_it_up() -> None:
    assert read_reply(with_usage({"prompt_tokens": None})).usage.prompt is None
    assert read_reply(with_usage({"prompt_tokens_details": {"cached_tokens": None}})).usage.cached is None


@table_test(
    ("body", "error", "text"),
    [
        (b"", json.JSONDecodeError, "Expecting value: line 1 column 1 (char 0)"),
        (b"<html>", json.JSONDecodeError, "Expecting value: line 1 column 1 (char 0)"),
        (
            b"{",
            json.JSONDecodeError,
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (
            b"\xffabc",
            UnicodeDecodeError,
            "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (b"{}", RuntimeError, "LLM API error: {}"),
        (b'{"choices": []}', RuntimeError, "LLM API error: {'choices': []}"),
        (b'{"choices": null}', RuntimeError, "LLM API error: {'choices': None}"),
        (b'{"error": {"message": "boom"}}', RuntimeError, "LLM API error: boom"),
        (b'{"error": {"code": 7}}', RuntimeError, "LLM API error: {'error': {'code': 7}}"),
        (b'{"error": "x"}', AttributeError, "'str' object has no attribute 'get'"),
        (b"[]", AttributeError, "'list' object has no attribute 'get'"),
        (b"null", TypeError, "argument of type 'NoneType' is not iterable"),
        (b'{"choices": [{}]}', KeyError, "'message'"),
        (b'{"choices": [null]}', TypeError, "'NoneType' object is not subscriptable"),
        (b'{"choices": [{"message": null}]}', AttributeError, "'NoneType' object has no attribute 'get'"),
    ],
)
def test_a_body_without_a_usable_message_fails_as_in_statek(
    body: bytes, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        read_reply(body)
    assert str(caught.value) == text


@table_test(
    ("function", "text"),
    [
        (
            {"name": "t", "arguments": ""},
            "Invalid JSON in 'arguments': Expecting value: line 1 column 1 (char 0)",
        ),
        (
            {"name": "t", "arguments": "{"},
            (
                "Invalid JSON in 'arguments': "
                "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
            ),
        ),
        (
            {"name": "t", "arguments": "{} x"},
            "Invalid JSON in 'arguments': Extra data: line 1 column 4 (char 3)",
        ),
        ({"name": "t", "arguments": "[]"}, "'arguments' must decode to a JSON object, got list."),
        ({"name": "t", "arguments": "null"}, "'arguments' must decode to a JSON object, got NoneType."),
        (
            {"name": "t", "arguments": {"a": 1}},
            "Unable to parse tool call request: the JSON object must be str, bytes or bytearray, not dict",
        ),
        ({"name": 5}, "'name' must be a string, got int."),
        ({}, "Missing 'name' in tool call function."),
        ("abc", "Missing 'name' in tool call function."),
        (None, "Unable to parse tool call request: argument of type 'NoneType' is not iterable"),
    ],
)
def test_a_malformed_function_is_an_invalid_format_as_in_statek(function: JSON, text: str) -> None:
    with pytest.raises(InvalidFormat) as caught:
        read_reply(with_function(function))
    assert str(caught.value) == text


@table_test(
    ("call", "text"),
    [
        ({}, "Missing 'function' key in tool call request."),
        (None, "Unable to parse tool call request: 'NoneType' object has no attribute 'get'"),
        (
            {"type": "other", "function": {"name": "t"}},
            "Unsupported tool call type: 'other'. Expected 'function' or 'tool_use'.",
        ),
        ({"type": "tool_use"}, "Missing 'name' in Anthropic tool_use block."),
        ({"type": "tool_use", "name": "n", "input": None}, "'input' must be a dict, got NoneType."),
    ],
)
def test_a_malformed_tool_call_is_an_invalid_format_as_in_statek(call: JSON, text: str) -> None:
    with pytest.raises(InvalidFormat) as caught:
        read_reply(with_call(call))
    assert str(caught.value) == text


def test_null_usage_fails_as_in_statek() -> None:
    with pytest.raises(AttributeError, match=r"^'NoneType' object has no attribute 'get'$"):
        read_reply(with_usage(None))


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        ({"prompt_tokens": "5"}, "unsupported operand type(s) for +=: 'int' and 'str'"),
        ({"completion_tokens": []}, "unsupported operand type(s) for +=: 'int' and 'list'"),
        ({"cost": "x"}, "unsupported operand type(s) for +: 'float' and 'str'"),
    ],
)
def test_usage_that_cannot_be_added_up_fails_with_the_text_of_the_addition(usage: JSON, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        read_reply(with_usage(usage))
    assert str(caught.value) == text


def test_content_that_is_no_string_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"^expected string or bytes-like object, got 'list'$"):
        read_reply(with_message({"content": ["x"]}))


def test_a_body_is_compact_utf8_json_that_depends_on_the_arguments_alone() -> None:
    body = written("żółw")
    assert (
        body
        == (
            '{"id":"chatcmpl-main-2","object":"chat.completion","created":1767258001,"model":"gpt-4o","choices":'
            '[{"index":0,"message":{"role":"assistant","content":"żółw"},"finish_reason":"stop"}]}'
        ).encode()
    )


def test_a_body_with_calls_finishes_because_of_them_and_has_null_content() -> None:
    call = WireToolCall("call-1-1", "fetch", '{"owner": "a"}')
    body = json.loads(written(None, (call,)))
    assert body["choices"][0] == {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call-1-1",
                    "type": "function",
                    "function": {"name": "fetch", "arguments": '{"owner": "a"}'},
                }
            ],
        },
        "finish_reason": "tool_calls",
    }


def test_usage_is_in_the_body_only_when_asked_for() -> None:
    def usage_of(usage: ReportedUsage | None) -> JSON:
        body: dict[str, JSON] = json.loads(written("x", usage=usage))
        return body.get("usage", "absent")

    assert usage_of(NO_USAGE) == "absent"
    assert usage_of(None) is None
    assert usage_of(ReportedUsage(prompt=5, completion=2, cached=1, cost=1)) == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 1},
        "cost": 1.0,
    }


def test_equal_usage_gives_equal_bytes_whatever_number_type_came_first() -> None:
    def body(cost: float) -> bytes:
        return written("x", usage=ReportedUsage(cost=cost))

    assert body(3) == body(3.0)


def test_a_lone_surrogate_is_escaped_so_that_the_body_stays_utf8() -> None:
    body = written("a\ud800b")
    assert "a\\ud800b" in body.decode()
    assert read_reply(body).text == "a\ud800b"


def test_a_body_that_comes_again_is_not_read_again_unless_its_reply_can_be_changed() -> None:
    text = written("print(1)")
    assert read_reply(bytes(bytearray(text))) is read_reply(text)
    call = written(None, (WireToolCall("call-1", "note", '{"tags": []}'),))
    first = read_reply(call).tool_calls[0].arguments
    first["tags"] = ["changed by a tool"]
    assert read_reply(call).tool_calls[0].arguments == {"tags": []}
