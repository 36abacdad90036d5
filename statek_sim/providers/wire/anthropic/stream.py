"""A streamed message: `message_start`, blocks with their deltas, `message_delta`, `message_stop`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.anthropic.server import head, stop_fields, usage_field
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import Split
from statek_sim.providers.wire.reply import WireReply, WireToolCall
from statek_sim.values import JSON


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield the events of a message. The first one has the prompt's tokens, `message_delta` all, as they add up.

    LangChain reads them from `message_delta` alone.
    """
    reported = usage_field(reply.usage) if usage else {}
    start: dict[str, JSON] = {
        **head(reply),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **_at_the_start(reported),
    }
    yield _event("message_start", {"message": start})
    index = 0
    if reply.text:
        yield from _block(index, {"type": "text", "text": ""}, "text_delta", "text", split(reply.text))
        index += 1
    for number, call in enumerate(reply.calls, index):
        yield from _call(number, call, split)
    yield _event("message_delta", {"delta": stop_fields(reply), **reported})
    yield _event("message_stop", {})


def _event(name: str, data: dict[str, JSON]) -> bytes:
    return sse.event(compact({"type": name, **data}), name=name)


def _call(index: int, call: WireToolCall, split: Split) -> Iterator[bytes]:
    block: dict[str, JSON] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    pieces = split(call.arguments) if call.arguments else ()
    yield from _block(index, block, "input_json_delta", "partial_json", pieces)


def _block(
    index: int, block: dict[str, JSON], delta: str, key: str, pieces: Sequence[str]
) -> Iterator[bytes]:
    yield _event("content_block_start", {"index": index, "content_block": block})
    for piece in pieces:
        yield _event("content_block_delta", {"index": index, "delta": {"type": delta, key: piece}})
    yield _event("content_block_stop", {"index": index})


def _at_the_start(reported: dict[str, JSON]) -> dict[str, JSON]:
    usage = reported.get("usage")
    return {"usage": {**usage, "output_tokens": 0}} if isinstance(usage, dict) else reported


def join_stream(stream: bytes) -> bytes:
    """Return the `message` that the events add up to. `ValueError` for an event that is not JSON."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for data in sse.events(stream):
        event = json.loads(data)
        match event.get("type"):
            case "message_start":
                message = dict(event["message"])
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                _add(event["delta"], blocks[event["index"]], inputs, event["index"])
            case "message_delta":
                message.update(event["delta"])
                if isinstance(message.get("usage"), dict):
                    message["usage"] = {**message["usage"], **(event.get("usage") or {})}
            case "error":
                return compact(event).encode()
            case _:
                pass
    for index, text in inputs.items():
        blocks[index]["input"] = _arguments(text)
    if message:
        message["content"] = [blocks[index] for index in sorted(blocks)]
    return compact(message).encode()


def _add(delta: dict[str, Any], block: dict[str, Any], inputs: dict[int, str], index: int) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case _:
            pass


def _arguments(text: str) -> JSON:
    """Return the arguments that arrived in pieces; a text that is no JSON stays one."""
    try:
        given: JSON = json.loads(text)
    except ValueError:
        return text
    return given
