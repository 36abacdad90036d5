"""What a provider's answer says to the loop where servers write it otherwise than OpenAI does."""

from __future__ import annotations

import json

import pytest

from statek_sim.agent.replies.reading import read_model_reply
from statek_sim.values import JSON


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


def test_a_call_without_arguments_may_have_an_empty_text_of_them() -> None:
    call: JSON = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    (written,) = read_model_reply(body(tool_calls=[call]), "openai").calls
    assert (written.name, written.arguments) == ("look", "{}")


@pytest.mark.parametrize(
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
