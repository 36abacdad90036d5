"""The chat format's own tokens, counted with a tokenizer whose counts can be checked by eye."""

from __future__ import annotations

import pytest

from statek_sim.usage.messages import (
    REPLY_PRIMING,
    completion_tokens,
    message_tokens,
    prompt_tokens,
    tool_call_tokens,
    tools_tokens,
)
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON, Message, ToolSpec
from tests.tables import table_test


class Words:
    """One token for each word."""

    def count(self, text: str) -> int:
        return len(text.split())


WORDS = Words()
CALL: JSON = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def _tool(properties: dict[str, JSON], description: str = "Adds two numbers.") -> ToolSpec:
    parameters: JSON = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": "add", "description": description, "parameters": parameters},
    }


@table_test(
    ("message", "tokens"),
    [
        ({"role": "user", "content": "three words here"}, 3 + 1 + 3),
        ({"role": "user", "content": ""}, 3 + 1),
        ({"role": "user", "content": "hello there", "name": "ada"}, 3 + 1 + 2 + 1 + 1),
        ({"role": "assistant", "content": None}, 3 + 1),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, 3 + 1 + (3 + 1 + 2)),
        ({"role": "assistant", "content": "so", "tool_calls": [CALL, CALL]}, 3 + 1 + 1 + 2 * (3 + 1 + 2)),
        ({"role": "tool", "content": "the sum", "tool_call_id": "call_1"}, 3 + 1 + 2),
        ({"role": "user", "content": [{"type": "text", "text": "a b"}, "c"]}, 3 + 1 + 2 + 1),
    ],
)
def test_a_message_costs_three_tokens_its_role_its_texts_and_its_calls(message: Message, tokens: int) -> None:
    assert message_tokens(message, WORDS) == tokens


def test_the_id_of_a_call_costs_nothing() -> None:
    renamed = {**CALL, "id": "a much longer id"} if isinstance(CALL, dict) else CALL
    assert tool_call_tokens(renamed, WORDS) == tool_call_tokens(CALL, WORDS)


@table_test("call", [None, "add 1", [], {}, {"function": None}, {"function": {"arguments": {"a": 1}}}])
def test_a_malformed_call_is_still_counted(call: JSON) -> None:
    assert tool_call_tokens(call, WORDS) >= 3


def test_an_answer_is_its_text_and_its_calls() -> None:
    assert completion_tokens("two words", [CALL], WORDS) == 2 + 6
    assert completion_tokens(None, None, WORDS) == 0


def test_tools_cost_their_texts_and_the_frames_around_them() -> None:
    tools = [_tool({"a": {"type": "integer", "description": "the first."}, "b": {"type": "integer"}})]
    # "add:Adds two numbers", "a:integer:the first" and "b:integer:" are 3, 2 and 1 words.
    assert tools_tokens(tools, WORDS) == 12 + (7 + 3) + 3 + (3 + 2) + (3 + 1)


def test_a_tool_without_properties_costs_only_its_line() -> None:
    assert tools_tokens([_tool({})], WORDS) == 12 + (7 + 3)


def test_the_values_of_an_enum_are_counted() -> None:
    plain = tools_tokens([_tool({"a": {"type": "string"}})], WORDS)
    choice = tools_tokens([_tool({"a": {"type": "string", "enum": ["red", "dark blue"]}})], WORDS)
    assert choice - plain == -3 + (3 + 1) + (3 + 2)


def test_no_tools_cost_nothing() -> None:
    assert tools_tokens([], WORDS) == 0


@pytest.mark.parametrize("spec", [{}, {"function": None}, {"function": {"parameters": {"properties": [1]}}}])
def test_a_tool_of_an_unknown_shape_is_still_counted(spec: ToolSpec) -> None:
    assert tools_tokens([spec], WORDS) >= 12 + 7


def test_a_prompt_is_messages_tools_and_the_priming_of_the_reply() -> None:
    messages: list[Message] = [{"role": "user", "content": "hi"}]
    tools = [_tool({})]
    assert prompt_tokens(messages, tools, WORDS) == 5 + tools_tokens(tools, WORDS) + REPLY_PRIMING
    assert prompt_tokens([], [], WORDS) == 3


def test_a_real_tokenizer_counts_a_short_message_as_the_api_does() -> None:
    message: Message = {"role": "user", "content": "hello world"}
    assert prompt_tokens([message], [], tokenizer_for_model("gpt-4o").tokenizer) == 3 + 1 + 2 + 3
