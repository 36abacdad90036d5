"""Anthropic Messages as a provider speaks them: read a request, write an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.compact import compact
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
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    turn: dict[str, JSON] = {
        "role": "assistant",
        "content": text_of(texts, where=where) if texts else None,
    }
    if calls:
        turn["tool_calls"] = calls
    if len(texts) + len(calls) != len(blocks):
        turn[NATIVE_ANTHROPIC] = content
    return turn


def _call(block: Mapping[str, JSON]) -> JSON:
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
