"""Laws of metering: sizes kept as running sums are the sizes of the real thing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.providers.protocol import ChatRequest
from statek_sim.usage.conversation import MessageMeter, MeteredConversation
from statek_sim.usage.messages import body_size, envelope_size, json_size, message_tokens
from statek_sim.usage.token_usage import TurnUsage, UsageTotals
from statek_sim.usage.tokenizers import ModelTokenizer
from statek_sim.values import JSON, Message


class Letters:
    """One token for each character."""

    def count(self, text: str) -> int:
        return len(text)


# All of Unicode, lone surrogates too: model output may contain anything that JSON can escape.
texts = st.text(st.characters(), max_size=20)
values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
calls = st.fixed_dictionaries(
    {
        "id": texts,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": texts, "arguments": texts}),
    }
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.fixed_dictionaries({"role": texts, "content": texts}),
    st.fixed_dictionaries({"role": texts, "content": texts, "tool_call_id": texts}),
    st.fixed_dictionaries(
        {"role": texts, "content": st.none() | texts, "tool_calls": st.lists(calls, max_size=2)}
    ),
    st.dictionaries(texts, values, max_size=3),
)
turns = st.builds(
    TurnUsage,
    *[st.integers(0, 1000)] * 4,
    *[st.none() | st.integers(0, 1000)] * 3,
    st.none() | st.integers(0, 8).map(float),
    st.sampled_from(["o200k_base", "cl100k_base", "o200k_base (proxy)"]),
)


def _meter() -> MessageMeter:
    return MessageMeter(ModelTokenizer("letters", proxy=False, tokenizer=Letters()))


@given(values)
def test_the_size_of_any_value_is_that_of_its_json(value: JSON) -> None:
    assert json_size(value) == len(json.dumps(value).encode())


@given(
    model=texts,
    history=st.lists(messages, max_size=6),
    tools=st.lists(st.dictionaries(texts, values, max_size=3), max_size=2),
    temperature=st.none() | st.floats(0, 1),
)
def test_the_size_of_a_request_kept_as_a_running_sum_is_that_of_its_body(
    model: str, history: list[Message], tools: list[dict[str, JSON]], temperature: float | None
) -> None:
    conversation = MeteredConversation(_meter())
    envelope = envelope_size(model, tools, temperature)
    for message in [None, *history]:
        if message is not None:
            conversation.append(message)
        size = body_size(envelope, conversation.messages_json, len(conversation))
        request = ChatRequest(
            job_id="job-1",
            role="worker",
            turn=1,
            attempt=1,
            at=0.0,
            model=model,
            messages=conversation.view(),
            tools=tuple(tools),
            temperature=temperature,
            bytes_sent=size,
        )
        assert size == len(json.dumps(request.body()).encode())


@given(st.lists(messages, max_size=8), st.data())
def test_a_conversation_and_every_beginning_of_it_have_the_sizes_of_their_messages(
    history: list[Message], data: st.DataObject
) -> None:
    meter = _meter()
    conversation = MeteredConversation(meter, history)
    n = data.draw(st.integers(0, len(history)))
    beginning = conversation.truncated(n)
    assert beginning.messages_json == sum(len(json.dumps(message)) for message in history[:n])
    assert beginning.tokens == sum(message_tokens(message, Letters()) for message in history[:n])
    assert conversation.view(n).__len__() == len(beginning) == n


@given(st.lists(turns, max_size=6), st.data())
def test_totals_do_not_depend_on_how_the_turns_were_grouped(
    usages: list[TurnUsage], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(usages)))
    whole, left, right = UsageTotals(), UsageTotals(), UsageTotals()
    for at, usage in enumerate(usages):
        whole.add(usage)
        (left if at < cut else right).add(usage)
    left.merge(right)
    assert left == whole
    assert whole.approx_tokens == (whole.bytes_sent + whole.bytes_received) // 4
