"""What an answer of a provider says, where providers differ."""

from __future__ import annotations

import json

from statek_sim.agent.replies.model_reply import read_model_reply
from statek_sim.values import JSON
from tests.tables import table_test


@table_test("arguments", ["", " \n", None, {}])
def test_a_call_without_arguments_has_none_however_the_provider_writes_it(arguments: object) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "list_rooms", "arguments": arguments}}
    body = {"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    [read] = read_model_reply(json.dumps(body).encode(), "openai").calls
    assert (read.name, read.arguments) == ("list_rooms", "{}")


def test_arguments_that_are_no_json_stay_as_they_were_written() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "list_rooms", "arguments": "{rooms"}}
    body = {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
    [read] = read_model_reply(json.dumps(body).encode(), "openai").calls
    assert read.arguments == "{rooms"


def body(**message: JSON) -> bytes:
    return json.dumps(
        {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": "stop"}]}
    ).encode()


def test_content_in_parts_is_joined() -> None:
    parts: JSON = [
        {"type": "text", "text": "It is "},
        {"type": "refusal", "refusal": "no"},
        {"type": "text", "text": "empty."},
    ]
    assert read_model_reply(body(content=parts), "openai").text == "It is empty."


@table_test(
    ("answer", "why"),
    [
        (
            {"error": {"message": "model overloaded", "code": 502}},
            "the answer has no choices: model overloaded",
        ),
        ({"error": {"code": 502}}, 'the answer has no choices: {"code":502}'),
        ({"error": "x" * 999}, f"the answer has no choices: {'x' * 200}"),
        ({"choices": []}, "the answer has no choices"),
        ({}, "the answer has no choices"),
    ],
    ids=["message", "code", "text", "empty", "nothing"],
)
def test_an_answer_without_choices_says_so_in_the_providers_words(answer: JSON, why: str) -> None:
    assert read_model_reply(json.dumps(answer).encode(), "openai").unreadable == why
