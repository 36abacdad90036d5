"""Anthropic Messages as a provider speaks them, whole or streamed: read a request, write an answer.

The client's side is `anthropic_client`; with it this module is one `WireFormat`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire import encoding
from statek_sim.providers.wire.anthropic_client import read_reply as read_reply
from statek_sim.providers.wire.anthropic_client import request_body as request_body
from statek_sim.providers.wire.anthropic_client import request_headers as request_headers
from statek_sim.providers.wire.anthropic_client import request_url as request_url
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.format import FormatName, Split
from statek_sim.providers.wire.parameters import ANTHROPIC, ANTHROPIC_COUNT
from statek_sim.providers.wire.reply import ReportedUsage, StopReason, WireReply, WireToolCall
from statek_sim.providers.wire.request import (
    NATIVE_ANTHROPIC,
    NO_DEMANDS,
    Demands,
    WireRequest,
    limit_of,
    member,
    number_or_none,
    objects,
    stops_of,
    text_of,
)
from statek_sim.values import JSON, Message

NAME: Final[FormatName] = "anthropic"


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
    return encoding.event(compact({"type": name, **data}), name=name)


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
    for data in encoding.events(stream):
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


STOP_REASONS: Final[Mapping[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}

_ERROR_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def read_request(body: JSON, url: str = "") -> WireRequest:
    """Read a request as the API does: `max_tokens` must be there, unless `url` ends in `/count_tokens`."""
    if not isinstance(body, dict):
        raise BadRequest(f"the body: expected an object, got {body!r}")
    counting = url.endswith("/count_tokens")
    known = ANTHROPIC_COUNT if counting else ANTHROPIC
    system = text_of(body.get("system"), where="system")
    prompt: list[Message] = [{"role": "system", "content": system}] if system else []
    messages = [
        heard
        for number, message in enumerate(objects(body.get("messages"), where="messages"))
        for heard in _said(message, f"messages[{number}]")
    ]
    return WireRequest(
        model=member(body, "model", str, where=""),
        messages=(*prompt, *messages),
        tools=tuple(map(_tool, objects(body.get("tools") or [], where="tools"))),
        temperature=number_or_none(body, "temperature"),
        demands=NO_DEMANDS if counting else _demands(body),
        stream=body.get("stream") is True,
        stream_usage=True,
        unheeded=known.unheeded(body),
        wrong=known.wrong(body),
    )


def _demands(body: Mapping[str, JSON]) -> Demands:
    choice = body.get("tool_choice")
    chosen: Mapping[str, JSON] = choice if isinstance(choice, dict) else {}
    kind, name = chosen.get("type"), chosen.get("name")
    config = body.get("output_config")
    wanted = config.get("format") if isinstance(config, dict) else body.get("output_format")
    return Demands(
        stop=stops_of(body.get("stop_sequences"), where="stop_sequences"),
        max_tokens=limit_of(member(body, "max_tokens", int, where=""), where="max_tokens"),
        json_object=isinstance(wanted, dict) and wanted.get("type") == "json_schema",
        calls="must" if kind in ("any", "tool") else "must not" if kind == "none" else "may",
        call_names=(name,) if kind == "tool" and isinstance(name, str) else (),
        one_call=chosen.get("disable_parallel_tool_use") is True,
    )


def _said(message: dict[str, JSON], where: str) -> Iterator[Message]:
    """Yield what one message says in OpenAI's shape: results of tools are messages of their own there."""
    role = member(message, "role", str, where=f"{where}.")
    content = message.get("content")
    if role == "assistant":
        yield _turn(content, where)
    elif role != "user":
        raise BadRequest(f"{where}.role: expected 'user' or 'assistant', got {role!r}")
    elif isinstance(content, str):
        yield {"role": "user", "content": content}
    else:
        yield from _blocks(objects(content, where=f"{where}.content"), where)


def _blocks(blocks: list[dict[str, JSON]], where: str) -> Iterator[Message]:
    content: list[JSON] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            if content:
                yield {"role": "user", "content": text_of(content, where=where)}
                content = []
            result = text_of(block.get("content"), where=f"{where}.content")
            yield {"role": "tool", "content": result or "", "tool_call_id": block.get("tool_use_id", "")}
        else:
            content.append(block)
    if content:
        yield {"role": "user", "content": text_of(content, where=where)}


def _turn(content: JSON, where: str) -> Message:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    blocks = objects(content, where=f"{where}.content")
    texts: list[JSON] = [block for block in blocks if block.get("type") == "text"]
    calls = [_call_server(block) for block in blocks if block.get("type") == "tool_use"]
    turn: dict[str, JSON] = {
        "role": "assistant",
        "content": text_of(texts, where=where) if texts else None,
    }
    if calls:
        turn["tool_calls"] = calls
    if len(texts) + len(calls) != len(blocks):
        turn[NATIVE_ANTHROPIC] = content
    return turn


def _call_server(block: Mapping[str, JSON]) -> JSON:
    arguments = json.dumps(block.get("input", {}))
    return {
        "id": block.get("id", ""),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def _tool(tool: Mapping[str, JSON]) -> dict[str, JSON]:
    return {
        "type": "function",
        "function": {
            "name": tool.get("name"),
            "description": tool.get("description", ""),
            "parameters": tool.get("input_schema", {}),
        },
    }


def reply_body(reply: WireReply) -> bytes:
    """Return a `message`; its bytes depend on `reply` alone."""
    body: dict[str, JSON] = {
        **head(reply),
        "content": _content(reply),
        **stop_fields(reply),
        **usage_field(reply.usage),
    }
    return compact(body).encode()


def stop_fields(reply: WireReply) -> dict[str, JSON]:
    """Return why the reply ended."""
    stopped = reply.stop_sequence
    return {
        "stop_reason": "stop_sequence" if stopped else STOP_REASONS[reply.reason],
        "stop_sequence": stopped,
    }


def head(reply: WireReply) -> dict[str, JSON]:
    """Return what an answer and the first event of a stream begin with."""
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _content(reply: WireReply) -> list[JSON]:
    text: list[JSON] = [{"type": "text", "text": reply.text}] if reply.text else []
    return [*text, *map(tool_use, reply.calls)]


def tool_use(call: WireToolCall) -> JSON:
    """Return the block of a call. Arguments that are no JSON, which this format cannot hold, stay a string."""
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = call.arguments
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the field `usage`, or nothing for a reply without usage."""
    if usage is None:
        return {"usage": None}
    if not usage.present:
        return {}
    counts: dict[str, JSON] = {
        "input_tokens": usage.prompt,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
    return {"usage": counts if usage.cost is None else {**counts, "cost": float(usage.cost)}}


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"type": "error", ...}` with the type that Anthropic gives such a status."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return compact({"type": "error", "error": {"type": kind, "message": message}}).encode()
