"""Sizes are those of `json.dumps` with Python's defaults."""

from __future__ import annotations

import json

import pytest

from statek_sim.usage.messages import body_size, envelope_size, json_size, message_size
from statek_sim.values import JSON, Message, ToolSpec
from tests.tables import table_test

TOOLS: list[ToolSpec] = [{"type": "function", "function": {"name": "add", "description": "Dodaje ą."}}]


@table_test(
    "value",
    [
        "",
        "plain",
        'quo"te\n',
        "ż",
        "😀",
        "\ud800",
        None,
        True,
        0,
        -1.5,
        float("nan"),
        [],
        {},
        [[], {}],
        {"a": [1, "ż"]},
    ],
)
def test_the_size_of_a_value_is_that_of_its_json(value: JSON) -> None:
    assert json_size(value) == len(json.dumps(value).encode())


@table_test(("text", "size"), [("a", 1), ("ż", 6), ("中", 6), ("😀", 12)])
def test_a_character_outside_ascii_costs_six_bytes_and_an_astral_one_twelve(text: str, size: int) -> None:
    assert json_size(text) == 2 + size


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    ],
)
def test_the_size_of_a_message_is_that_of_its_json(message: Message) -> None:
    assert message_size(message) == len(json.dumps(message))


def test_an_empty_body_is_its_envelope() -> None:
    assert body_size(envelope_size("gpt-4o"), 0, 0) == len('{"model": "gpt-4o", "messages": []}')


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_body_is_its_envelope_its_messages_and_the_separators_between_them(count: int) -> None:
    messages: list[JSON] = [{"role": "user", "content": "hi"}] * count
    body = {"model": "m", "messages": messages, "tools": TOOLS, "temperature": 0.5}
    total = sum(json_size(message) for message in messages)
    assert body_size(envelope_size("m", TOOLS, 0.5), total, count) == len(json.dumps(body))


def test_a_temperature_of_zero_is_sent_and_none_is_not() -> None:
    assert envelope_size("m", temperature=0.0) - envelope_size("m") == len(', "temperature": 0.0')
