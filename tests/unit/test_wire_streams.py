"""Streams as providers send them: the events and their order, per format."""

from __future__ import annotations

import json
from collections.abc import Sequence

from statek_sim.providers.wire import anthropic, gemini, openai
from statek_sim.providers.wire.reply import ReportedUsage, WireReply, WireToolCall, sse_events
from statek_sim.values import JSON
from tests.tables import table_test

USAGE = ReportedUsage(prompt=7, completion=3, cached=2)
REPLY = WireReply(
    id="1",
    model="m",
    created=5,
    text="On it.",
    calls=(WireToolCall("c1", "note", '{"text": "a"}'),),
    usage=USAGE,
)


def words(text: str) -> Sequence[str]:
    return [text[:3], text[3:]]


def payloads(stream: Sequence[bytes]) -> list[dict[str, JSON]]:
    return [json.loads(data) for event in stream for data in sse_events(event) if data != "[DONE]"]


def test_openai_streams_role_text_calls_reason_usage_and_done() -> None:
    stream = list(openai.reply_stream(REPLY, words))
    chunks = payloads(stream)

    assert stream[-1] == b"data: [DONE]\n\n"
    assert {(chunk["object"], chunk["id"], chunk["created"]) for chunk in chunks} == {
        ("chat.completion.chunk", "chatcmpl-1", 5)
    }
    assert [_delta(chunk) for chunk in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "On "},
        {"content": "it."},
        {
            "tool_calls": [
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "note", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"t'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ext": "a"}'}}]},
        {},
    ]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2},
    }


def _delta(chunk: dict[str, JSON]) -> JSON:
    choices = chunk["choices"]
    assert isinstance(choices, list)
    assert isinstance(choices[0], dict)
    return choices[0]["delta"]


def test_openai_tells_usage_only_when_it_was_asked_for() -> None:
    assert all(
        "usage" not in chunk for chunk in payloads(list(openai.reply_stream(REPLY, words, usage=False)))
    )


def test_anthropic_streams_named_events_block_by_block() -> None:
    stream = list(anthropic.reply_stream(REPLY, words))
    events = payloads(stream)

    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    for raw, event in zip(stream, events, strict=True):
        assert raw.startswith(f"event: {event['type']}\ndata: ".encode())
    assert events[2]["delta"] == {"type": "text_delta", "text": "On "}
    assert events[5]["content_block"] == {"type": "tool_use", "id": "c1", "name": "note", "input": {}}
    assert events[6]["delta"] == {"type": "input_json_delta", "partial_json": '{"t'}
    assert events[9]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[9]["usage"] == {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 3}


def test_gemini_streams_parts_and_tells_reason_and_usage_with_the_last() -> None:
    first, second, last = payloads(list(gemini.reply_stream(REPLY, words)))

    assert first["candidates"] == [{"content": {"role": "model", "parts": [{"text": "On "}]}, "index": 0}]
    assert "usageMetadata" not in second
    assert last["candidates"] == [
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "note", "args": {"text": "a"}}}],
            },
            "index": 0,
            "finishReason": "STOP",
        }
    ]
    assert last["usageMetadata"] == {
        "promptTokenCount": 7,
        "candidatesTokenCount": 3,
        "cachedContentTokenCount": 2,
        "totalTokenCount": 10,
    }


def test_an_error_in_an_anthropic_stream_is_what_the_stream_adds_up_to() -> None:
    error = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    stream = next(anthropic.reply_stream(REPLY, words)) + b"event: error\ndata: " + error + b"\n\n"
    assert anthropic.join_stream(stream) == error


def test_a_stream_that_was_cut_adds_up_to_what_came() -> None:
    stream = b"".join(list(openai.reply_stream(REPLY, words))[:3])
    message = json.loads(openai.join_stream(stream))["choices"][0]
    assert message == {
        "index": 0,
        "message": {"role": "assistant", "content": "On it."},
        "finish_reason": None,
    }


@table_test(
    ("stream", "data"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\n: ping\r\n\r\ndata:b\r\n\r\n", ["a", "b"]),
        (b"event: x\nid: 1\ndata: a\ndata: b\n\n", ["a\nb"]),
        (b"data: cut", ["cut"]),
        (b"", []),
    ],
)
def test_events_are_read_as_the_standard_says(stream: bytes, data: list[str]) -> None:
    assert list(sse_events(stream)) == data
