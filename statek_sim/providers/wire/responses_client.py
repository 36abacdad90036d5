"""OpenAI's Responses API as a client speaks it: build a request, read a reply.

STATEK has no such client, so nothing here imitates one; recordings of other clients are read with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    ToolCallRequest,
    read_tool_call,
    reported_cost,
    reported_tokens,
)
from statek_sim.providers.wire.request import PLAIN, Asked, ClientOptions
from statek_sim.values import JSON, Message, ToolSpec


def request_url(api_url: str, model: str) -> str:
    """Return the address of the API; one that names chat completions is changed to it."""
    base = api_url.removesuffix("/chat/completions").removesuffix("/responses")
    return f"{base}/responses"


def request_body(request: Asked, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return the body of a request: a first system message as instructions, the rest as items."""
    prompt, rest = _instructions(list(request.messages))
    body: dict[str, JSON] = {
        "model": request.model,
        "input": [item for message in rest for item in _items(message)],
    }
    if prompt is not None:
        body["instructions"] = prompt
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if options.max_tokens is not None:
        body["max_output_tokens"] = options.max_tokens
    return body


def _instructions(messages: list[Message]) -> tuple[JSON, list[Message]]:
    first = messages[0] if messages and messages[0].get("role") == "system" else None
    return (None, messages) if first is None else (first.get("content"), messages[1:])


def _items(message: Message) -> Iterator[JSON]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message.get("tool_call_id", ""),
            "output": content,
        }
        return
    if content is not None:
        yield {"role": role, "content": content}
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            named = {key: function.get(key) for key in ("name", "arguments")}
            yield {"type": "function_call", "call_id": call.get("id"), **named}


def _tool(spec: ToolSpec) -> JSON:
    function = spec.get("function")
    return {"type": "function", **function} if isinstance(function, dict) else dict(spec)


def read_reply(body: bytes) -> ParsedReply:
    """Read the body of a successful answer.

    `ValueError` for a body that is not JSON, `RuntimeError` for one without output, `InvalidFormat` for a bad call,
    `AttributeError`, `TypeError` or `LookupError` for other wrong shapes.
    """
    answer = json.loads(body)
    if "output" not in answer or not isinstance(answer["output"], list):
        raise RuntimeError(f"LLM API error: {(answer.get('error') or {}).get('message', str(answer))}")
    texts: list[str] = []
    calls: list[ToolCallRequest] = []
    for item in answer["output"]:
        match item.get("type"):
            case "message":
                texts += [part["text"] for part in item["content"] if part.get("type") == "output_text"]
            case "function_call":
                calls.append(
                    read_tool_call(
                        {
                            "id": item.get("call_id", ""),
                            "function": {"name": item.get("name"), "arguments": item.get("arguments", "{}")},
                        }
                    )
                )
            case _:
                pass  # thoughts, and what the provider's own tools did
    usage = _usage(answer["usage"]) if "usage" in answer else NO_USAGE
    return ParsedReply("".join(texts), tuple(calls), usage)


def _usage(usage: dict[str, JSON]) -> ReportedUsage:
    details = usage.get("input_tokens_details") or {}
    return ReportedUsage(
        prompt=reported_tokens(usage.get("input_tokens", 0)),
        completion=reported_tokens(usage.get("output_tokens", 0)),
        cached=reported_tokens(details.get("cached_tokens", 0) if isinstance(details, dict) else 0),
        cost=reported_cost(usage.get("cost")),
    )
