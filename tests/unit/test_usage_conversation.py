"""A conversation measures each message once and shows windows that never change."""

from __future__ import annotations

import json

import pytest

from statek_sim.usage.conversation import MessageMeter, MessageView, MeteredConversation
from statek_sim.usage.messages import message_tokens
from statek_sim.usage.tokenizers import SHORT_TEXT, ModelTokenizer, tokenizer_for_model
from statek_sim.values import JSON, Message
from tests.tables import table_test


class Letters:
    """One token for each character; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def _meter() -> tuple[MessageMeter, Letters]:
    letters = Letters()
    return MessageMeter(ModelTokenizer("letters", proxy=False, tokenizer=letters)), letters


def _call(call_id: str, arguments: str = "{}") -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": "add", "arguments": arguments}}


HELLO: Message = {"role": "user", "content": "hello"}
BYE: Message = {"role": "assistant", "content": "bye"}
SHAPES: list[Message] = [
    {},
    HELLO,
    {"content": "keys in another order", "role": "user"},
    {"role": "user", "content": "ż😀" * SHORT_TEXT},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "text", "text": "part"}]},
    {"role": "user", "content": "hi", "name": "ada"},
    {"role": "user", "text": "no content"},
    {"role": "tool", "content": "3", "tool_call_id": "call_żółw"},
    {"role": "tool", "content": None, "tool_call_id": ""},
    {"role": "tool", "tool_call_id": "1", "name": "no content"},
    {"role": "assistant", "content": None, "tool_calls": [_call("a\n")]},
    {"role": "assistant", "content": "so", "tool_calls": [_call("1"), _call("2")]},
    {"role": "assistant", "content": None, "tool_calls": [_call("1", "x" * (SHORT_TEXT + 1))]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {}, "type": "function"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": None, "type": "other"}]},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "tool_calls": [_call("1")], "name": "no content"},
]


@table_test("message", SHAPES, ids=[str(index) for index in range(len(SHAPES))])
def test_a_meter_measures_every_shape_of_message_the_same_way_twice(message: Message) -> None:
    meter, letters = _meter()
    expected = (len(json.dumps(message)), message_tokens(message, letters))
    assert [meter.measure(message), meter.measure(message)] == [expected, expected]


def test_a_conversation_keeps_the_sums_of_its_messages() -> None:
    meter, letters = _meter()
    conversation = MeteredConversation(meter, SHAPES)
    assert len(conversation) == len(SHAPES)
    assert conversation.messages_json == sum(len(json.dumps(message)) for message in SHAPES)
    assert conversation.tokens == sum(message_tokens(message, letters) for message in SHAPES)


def test_an_empty_conversation_has_no_size() -> None:
    conversation = MeteredConversation(_meter()[0])
    assert (len(conversation), conversation.messages_json, conversation.tokens) == (0, 0, 0)
    assert conversation.view() == []


def test_appending_measures_only_the_new_message() -> None:
    meter, letters = _meter()
    conversation = MeteredConversation(meter, [HELLO] * 100)
    letters.asked.clear()
    conversation.append(BYE)
    assert letters.asked == ["assistant", "bye"]


def test_a_view_is_not_changed_by_later_messages() -> None:
    conversation = MeteredConversation(_meter()[0], [HELLO])
    view = conversation.view()
    conversation.append(BYE)
    assert list(view) == [HELLO]
    assert list(conversation.view()) == [HELLO, BYE]
    assert list(conversation.view(1)) == [HELLO]
    assert list(conversation.view(0)) == []


def test_a_view_is_a_sequence() -> None:
    view = MeteredConversation(_meter()[0], [HELLO, BYE, HELLO]).view(2)
    assert (len(view), view[0], view[1], view[-1], view[-2]) == (2, HELLO, BYE, BYE, HELLO)
    assert (view[:1], view[::-1], view[5:]) == ((HELLO,), (BYE, HELLO), ())
    assert list(reversed(view)) == [BYE, HELLO]
    assert BYE in view
    assert view.index(BYE) == 1
    assert view.count(HELLO) == 1
    assert repr(view) == repr([HELLO, BYE])


@pytest.mark.parametrize("index", [2, -3, 100])
def test_a_view_has_no_message_outside_its_length(index: int) -> None:
    view = MeteredConversation(_meter()[0], [HELLO, BYE, HELLO]).view(2)
    with pytest.raises(IndexError, match=rf"^message {index}, expected one of 2$"):
        view[index]


def test_a_view_equals_lists_tuples_and_views_of_the_same_messages() -> None:
    conversation = MeteredConversation(_meter()[0], [HELLO, BYE])
    view = conversation.view()
    assert view == [HELLO, BYE]
    assert view == (HELLO, BYE)
    assert view == MessageView([HELLO, BYE, BYE], 2)
    assert view != [HELLO]
    assert view != [BYE, HELLO]
    assert view != "text"


def test_a_truncated_conversation_has_the_sums_of_its_beginning_and_goes_its_own_way() -> None:
    meter, letters = _meter()
    conversation = MeteredConversation(meter, [HELLO, BYE, HELLO])
    letters.asked.clear()
    fork = conversation.truncated(2)
    assert letters.asked == []
    beginning = MeteredConversation(meter, [HELLO, BYE])
    assert (fork.messages_json, fork.tokens) == (beginning.messages_json, beginning.tokens)
    fork.append(BYE)
    assert list(fork.view()) == [HELLO, BYE, BYE]
    assert list(conversation.view()) == [HELLO, BYE, HELLO]


@pytest.mark.parametrize("n", [-1, 3])
def test_a_beginning_longer_than_the_conversation_is_an_error(n: int) -> None:
    conversation = MeteredConversation(_meter()[0], [HELLO, BYE])
    for beginning in (conversation.view, conversation.truncated):
        with pytest.raises(IndexError, match=rf"^the first {n} messages, expected 0 to 2$"):
            beginning(n)


def test_a_conversation_can_be_measured_with_another_tokenizer() -> None:
    conversation = MeteredConversation(_meter()[0], [HELLO])
    again = conversation.with_meter(MessageMeter(tokenizer_for_model("gpt-4o")))
    assert (conversation.tokens, again.tokens) == (3 + 4 + 5, 3 + 1 + 1)
    assert again.messages_json == conversation.messages_json
    assert again.meter.model_tokenizer.label == "o200k_base"
