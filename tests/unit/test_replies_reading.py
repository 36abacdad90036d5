"""What an answer of a provider says, where providers differ."""

from __future__ import annotations

import json

import pytest

from statek_sim.agent.replies.reading import read_model_reply


@pytest.mark.parametrize("arguments", ["", " \n", None, {}])
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
