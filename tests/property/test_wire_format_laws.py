"""Laws of the wire formats, the same for all three of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.errors import BadRequest, InvalidFormat
from statek_sim.providers.wire.format import FORMATS, WireFormat
from statek_sim.providers.wire.reply import NO_USAGE, ReportedUsage, StopReason, WireReply, WireToolCall
from statek_sim.providers.wire.request import ClientOptions, WireRequest
from statek_sim.values import JSON, Message

all_formats = pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
any_text = st.text(max_size=20)
arguments = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
tokens = st.integers(min_value=0, max_value=10**9)
usages = st.just(NO_USAGE) | st.builds(
    ReportedUsage,
    prompt=tokens | st.none(),
    completion=tokens | st.none(),
    cached=tokens | st.none(),
    cost=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
# A call without an id gets its name as one from Gemini's client.
calls = st.builds(WireToolCall, st.text(min_size=1, max_size=20), any_text, arguments.map(json.dumps))
stops: st.SearchStrategy[StopReason | None] = st.sampled_from(
    [None, "stop", "tool_calls", "length", "content_filter"]
)
replies = st.builds(
    WireReply,
    id=any_text,
    model=any_text,
    created=st.integers(min_value=0, max_value=2**40),
    text=any_text | st.none(),
    calls=st.lists(calls, max_size=3).map(tuple),
    stop=stops,
    usage=usages,
)

call_ids = st.sampled_from(["fetch", "store"])


def turn(said: str | None, requested: list[tuple[str, dict[str, JSON]]]) -> list[Message]:
    """Return an assistant message and the results of its calls; ids are names, as in Gemini's replies."""
    if not requested:
        return [{"role": "assistant", "content": said or "..."}]
    spoken: Message = {
        "role": "assistant",
        "content": said or None,
        "tool_calls": [
            {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for name, given in requested
        ],
    }
    results: list[Message] = [
        {"role": "tool", "content": f"result of {name}", "tool_call_id": name} for name, _ in requested
    ]
    return [spoken, *results]


user_messages = st.text(min_size=1, max_size=20).map(lambda said: [{"role": "user", "content": said}])
turns = st.builds(turn, any_text | st.none(), st.lists(st.tuples(call_ids, arguments), max_size=2))
prompts: st.SearchStrategy[list[Message]] = st.just([]) | st.text(min_size=1, max_size=20).map(
    lambda said: [{"role": "system", "content": said}]
)
specs = st.builds(
    lambda name, description, schema: {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    },
    any_text,
    any_text,
    arguments,
)
requests = st.builds(
    lambda prompt, said, tools, temperature: WireRequest(
        model="a-model",
        messages=(*prompt, *(message for part in said for message in part)),
        tools=tuple(tools),
        temperature=temperature,
    ),
    prompts,
    st.lists(user_messages | turns, max_size=4),
    st.lists(specs, max_size=2),
    st.none() | st.floats(min_value=0, max_value=1),
)

WORDS = """
    choices message content tool_calls function name arguments usage type text tool_use input id input_tokens
    thinking role messages system candidates parts functionCall args thought usageMetadata contents model
"""
wire_words = st.sampled_from(WORDS.split())
wire_shapes = st.recursive(
    st.none() | st.booleans() | st.integers() | wire_words | st.just("{}"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(wire_words, inner, max_size=4),
    max_leaves=12,
)


def in_threes(text: str) -> Sequence[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


@all_formats
@given(reply=replies)
def test_what_a_built_body_says_is_what_is_read_from_it(wire: WireFormat, reply: WireReply) -> None:
    body = wire.reply_body(reply)
    read = wire.read_reply(body)
    assert read.text == (reply.text or "")
    assert [(call.id, call.name, call.arguments) for call in read.tool_calls] == [
        (call.id, call.name, json.loads(call.arguments)) for call in reply.calls
    ]
    assert read.usage == reply.usage
    assert read.reasoning is None
    assert body.decode()


@all_formats
@given(reply=replies, usage=st.booleans())
def test_a_stream_adds_up_to_the_reply_in_one_piece(
    wire: WireFormat, reply: WireReply, *, usage: bool
) -> None:
    stream = b"".join(wire.reply_stream(reply, in_threes, usage=usage))
    read, whole = wire.read_reply(wire.join_stream(stream)), wire.read_reply(wire.reply_body(reply))
    assert (read.text, read.tool_calls) == (whole.text, whole.tool_calls)
    assert read.usage == (whole.usage if usage else NO_USAGE)


@all_formats
@given(request=requests, caching=st.booleans())
def test_a_request_that_is_read_from_a_body_has_the_same_body(
    wire: WireFormat, request: WireRequest, *, caching: bool
) -> None:
    options = ClientOptions(prompt_caching=caching)
    body = wire.request_body(request, options)
    path = wire.request_url("https://llm.invalid/v1/models", request.model)
    read = wire.read_request(json.loads(json.dumps(body)), path)
    assert wire.request_body(read, options) == body
    assert (read.model, read.tools, read.temperature) == (request.model, request.tools, request.temperature)


@all_formats
@given(shape=wire_shapes)
def test_any_json_body_is_read_or_fails_with_one_of_the_documented_errors(
    wire: WireFormat, shape: object
) -> None:
    documented = (RuntimeError, InvalidFormat, AttributeError, LookupError, TypeError)
    assert _outcome(wire, json.dumps(shape).encode(), documented)


@all_formats
@given(body=st.binary(max_size=40))
def test_any_bytes_are_read_or_fail_with_one_of_the_documented_errors(wire: WireFormat, body: bytes) -> None:
    assert _outcome(wire, body, (ValueError, RuntimeError, AttributeError, TypeError))


@all_formats
@given(shape=wire_shapes)
def test_any_json_is_a_request_or_a_bad_one(wire: WireFormat, shape: JSON) -> None:
    with suppress(BadRequest):
        assert isinstance(wire.read_request(shape, "models/m:generateContent"), WireRequest)


def _outcome(wire: WireFormat, body: bytes, documented: tuple[type[Exception], ...]) -> str:
    """Return what came of reading `body` in words; an undocumented error goes up."""
    try:
        return repr(wire.read_reply(body))
    except documented as error:
        return f"{type(error).__name__}: {error}"
