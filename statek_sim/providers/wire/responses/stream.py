"""A streamed response: `response.created`, items with their deltas, `response.completed`. Every event has a number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import Split
from statek_sim.providers.wire.reply import WireReply
from statek_sim.providers.wire.responses.server import (
    call_item,
    message,
    output,
    response,
    status,
    text_part,
)
from statek_sim.values import JSON

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield the events of an answer; the last one has the whole of it, and the usage."""
    for number, (kind, data) in enumerate(_events(reply, split, usage=usage)):
        yield sse.event(compact({"type": kind, **data, "sequence_number": number}), name=kind)


def _events(reply: WireReply, split: Split, *, usage: bool) -> Iterator[tuple[str, dict[str, JSON]]]:
    begun = response(reply, [], "in_progress", usage=False, at_end=False)
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    items = output(reply)
    first_call = len(items) - len(reply.calls)
    for index, item in enumerate(items):
        place: dict[str, JSON] = {"output_index": index}
        if index < first_call:
            yield "response.output_item.added", {**place, "item": message(reply, [], "in_progress")}
            yield from _text(reply, split, place)
        else:
            number = index - first_call
            added = call_item(reply, number, "", "in_progress")
            yield "response.output_item.added", {**place, "item": added}
            yield from _arguments(reply, number, split, place)
        yield "response.output_item.done", {**place, "item": item}
    state = status(reply)
    yield f"response.{state}", {"response": response(reply, items, state, usage=usage)}


def _text(reply: WireReply, split: Split, place: dict[str, JSON]) -> Iterator[tuple[str, dict[str, JSON]]]:
    text = reply.text or ""
    where: dict[str, JSON] = {"item_id": f"msg_{reply.id}", **place, "content_index": 0}
    yield "response.content_part.added", {**where, "part": text_part("")}
    for piece in split(text) if text else ():
        yield "response.output_text.delta", {**where, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**where, "text": text, "logprobs": []}
    yield "response.content_part.done", {**where, "part": text_part(text)}


def _arguments(
    reply: WireReply, number: int, split: Split, place: dict[str, JSON]
) -> Iterator[tuple[str, dict[str, JSON]]]:
    call = reply.calls[number]
    where: dict[str, JSON] = {"item_id": f"fc_{reply.id}_{number + 1}", **place}
    for piece in split(call.arguments) if call.arguments else ():
        yield "response.function_call_arguments.delta", {**where, "delta": piece}
    yield (
        "response.function_call_arguments.done",
        {**where, "name": call.name, "arguments": call.arguments},
    )


def join_stream(stream: bytes) -> bytes:
    """Return the `response` of the last event; of a stream that was cut off, what had come until then.

    `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    for data in sse.events(stream):
        event = json.loads(data)
        kind, index = event.get("type"), event.get("output_index", 0)
        if kind in _ENDS:
            return compact(event["response"]).encode()
        match kind:
            case "response.created":
                answer = event["response"]
            case "response.output_item.added" | "response.output_item.done":
                items[index] = event["item"]
            case "response.output_text.delta":
                _grow(items[index], event["delta"])
            case "response.function_call_arguments.delta":
                items[index]["arguments"] += event["delta"]
            case _:
                pass
    return compact({**answer, "output": [items[index] for index in sorted(items)]} if answer else {}).encode()


def _grow(item: dict[str, Any], piece: str) -> None:
    """Add a piece to the text of a message."""
    if not item["content"]:
        item["content"] = [text_part("")]
    item["content"][-1]["text"] += piece
