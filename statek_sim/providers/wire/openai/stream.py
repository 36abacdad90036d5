"""A streamed chat completion: `chat.completion.chunk` events, and `[DONE]`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from statek_sim.providers.wire import sse
from statek_sim.providers.wire.compact import compact, quoted
from statek_sim.providers.wire.format import Split
from statek_sim.providers.wire.openai.server import reply_id, usage_json
from statek_sim.providers.wire.reply import WireReply, WireToolCall
from statek_sim.values import JSON

DONE: Final = "[DONE]"


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a role, the text piece by piece, each call's name and then its arguments, the reason; then the usage.

    With `usage` (the client's `stream_options.include_usage`) a last chunk without choices carries it, and all
    others carry `null`; a reply without usage has neither.
    """
    reported = usage and (reply.usage is None or reply.usage.present)
    head = (
        f'{{"id":{quoted(reply_id(reply))},"object":"chat.completion.chunk","created":{reply.created},'
        f'"model":{quoted(reply.model)},"choices":['
    )
    tail = '],"usage":null}' if reported else "]}"
    for index, choice in enumerate((reply, *reply.others)):
        start = f'{head}{{"index":{index},"delta":'
        for delta in _deltas(choice, split):
            yield sse.event(f'{start}{compact(delta)},"finish_reason":null}}{tail}')
        yield sse.event(f'{start}{{}},"finish_reason":{quoted(choice.reason)}}}{tail}')
    if reported:
        yield sse.event(f'{head}],"usage":{usage_json(reply.usage)}}}')
    yield sse.event(DONE)


def _deltas(reply: WireReply, split: Split) -> Iterator[dict[str, JSON]]:
    yield {"role": "assistant", "content": None if reply.text is None else ""}
    for piece in split(reply.text) if reply.text else ():
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        yield from _call_deltas(index, call, split)


def _call_deltas(index: int, call: WireToolCall, split: Split) -> Iterator[dict[str, JSON]]:
    yield {
        "tool_calls": [
            {
                "index": index,
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }
        ]
    }
    for piece in split(call.arguments) if call.arguments else ():
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def join_stream(stream: bytes) -> bytes:
    """Return the `chat.completion` that the chunks add up to.

    `ValueError` for a chunk that is not JSON.
    """
    answer: dict[str, Any] = {}
    choices: dict[int, _Choice] = {0: _Choice()}
    for data in sse.events(stream):
        if data == DONE:
            continue
        chunk = json.loads(data)
        answer.update({key: value for key, value in chunk.items() if key not in ("choices", "object")})
        for choice in chunk.get("choices") or ():
            found = choices.setdefault(choice.get("index", 0), _Choice())
            found.reason = choice.get("finish_reason") or found.reason
            _add(choice.get("delta") or {}, found.message, found.calls)
    if answer.get("usage", "") is None:
        del answer["usage"]
    listed: list[JSON] = [choices[index].whole(index) for index in sorted(choices)]
    usage = {"usage": answer.pop("usage")} if "usage" in answer else {}
    return compact({**answer, "object": "chat.completion", "choices": listed, **usage}).encode()


class _Choice:
    """One choice of a streamed answer, as far as it has come."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"role": "assistant", "content": None}
        self.calls: dict[int, dict[str, Any]] = {}
        self.reason: str | None = None

    def whole(self, index: int) -> JSON:
        if self.calls:
            self.message["tool_calls"] = [self.calls[number] for number in sorted(self.calls)]
        return {"index": index, "message": self.message, "finish_reason": self.reason}


def _add(delta: dict[str, Any], message: dict[str, Any], calls: dict[int, dict[str, Any]]) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            for piece in value or ():
                _add_call(piece, calls)
        elif key != "role" and value is not None:
            before = message.get(key)
            message[key] = value if before is None else before + value


def _add_call(piece: dict[str, Any], calls: dict[int, dict[str, Any]]) -> None:
    call = calls.setdefault(
        piece.get("index", 0), {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = piece.get("id") or call["id"]
    function = piece.get("function") or {}
    for key in ("name", "arguments"):
        call["function"][key] += function.get(key) or ""
