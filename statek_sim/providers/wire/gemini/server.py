"""Gemini's generateContent as a provider speaks it: read a request, write an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.reply import ReportedUsage, StopReason, WireReply, WireToolCall
from statek_sim.providers.wire.request import (
    NATIVE_GEMINI,
    WireRequest,
    number_or_none,
    objects,
    text_of,
)
from statek_sim.values import JSON, Message

STOP_REASONS: Final[Mapping[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}

_STATUS_NAMES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

_METHOD: Final = re.compile(
    r"(?:^|/)(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)(?:\?.*)?$"
)


def read_request(body: JSON, url: str = "") -> WireRequest:
    """Read a request as the API does. `url`, or its path, ends in `MODEL:generateContent` or `:streamGenerateContent`.

    Calls have no ids here: a call and its result get the function's name as one unless they bring their own.
    """
    named = _METHOD.search(url)
    if named is None:
        raise BadRequest(
            f"the URL: expected to end in MODEL:generateContent or MODEL:streamGenerateContent, got {url!r}"
        )
    if not isinstance(body, dict):
        raise BadRequest(f"the body: expected an object, got {body!r}")
    contents = objects(body.get("contents"), where="contents")
    config = _object(_either(body, "generationConfig", "generation_config"), "generationConfig")
    return WireRequest(
        model=named["model"],
        messages=(
            *_prompt(_either(body, "systemInstruction", "system_instruction")),
            *(
                said
                for number, content in enumerate(contents)
                for said in _said(content, f"contents[{number}]")
            ),
        ),
        tools=tuple(_tools(objects(body.get("tools") or [], where="tools"))),
        temperature=number_or_none(config, "temperature"),
        max_tokens=_whole(number_or_none(config, "maxOutputTokens")),
        stream=named["method"] == "streamGenerateContent",
        stream_usage=True,
    )


def _either(mapping: Mapping[str, JSON], camel: str, snake: str) -> JSON:
    """Return a field by either of its names: the API takes both."""
    return mapping.get(camel, mapping.get(snake))


def _object(value: JSON, where: str) -> dict[str, JSON]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{where}: expected an object, got {value!r}")
    return value


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _prompt(instruction: JSON) -> list[Message]:
    parts = _object(instruction, "systemInstruction").get("parts") or []
    text = text_of(parts if isinstance(parts, list) else [parts], where="systemInstruction.parts")
    return [{"role": "system", "content": text}] if text else []


def _said(content: dict[str, JSON], where: str) -> Iterator[Message]:
    """Yield what one content says in OpenAI's shape: results of tools are messages of their own there."""
    role, parts = content.get("role", "user"), objects(content.get("parts"), where=f"{where}.parts")
    if role == "model":
        yield _turn(parts, where)
        return
    if role not in ("user", "function"):
        raise BadRequest(f"{where}.role: expected 'user', 'model' or 'function', got {role!r}")
    told: list[JSON] = []
    for part in parts:
        response = _either(part, "functionResponse", "function_response")
        if response is None:
            told.append(part)
            continue
        if told:
            yield {"role": "user", "content": text_of(told, where=where)}
            told = []
        yield _result(_object(response, f"{where}.functionResponse"))
    if told:
        yield {"role": "user", "content": text_of(told, where=where)}


def _result(response: Mapping[str, JSON]) -> Message:
    given = response.get("response")
    text = given.get("content") if isinstance(given, dict) and set(given) == {"content"} else None
    return {
        "role": "tool",
        "content": text if isinstance(text, str) else json.dumps(given),
        "tool_call_id": response.get("id") or response.get("name", ""),
    }


def _turn(parts: list[dict[str, JSON]], where: str) -> Message:
    texts: list[JSON] = [part for part in parts if set(part) == {"text"}]
    calls = [_call(part, where) for part in parts if _either(part, "functionCall", "function_call")]
    turn: dict[str, JSON] = {"role": "assistant", "content": text_of(texts, where=where) if texts else None}
    if calls:
        turn["tool_calls"] = calls
    if any("thought" in part or "thoughtSignature" in part for part in parts):
        turn[NATIVE_GEMINI] = list(parts)
    return turn


def _call(part: Mapping[str, JSON], where: str) -> JSON:
    call = _object(_either(part, "functionCall", "function_call"), f"{where}.functionCall")
    arguments = json.dumps(call.get("args", {}))
    return {
        "id": call.get("id") or call.get("name", ""),
        "type": "function",
        "function": {"name": call.get("name"), "arguments": arguments},
    }


def _tools(tools: list[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    for tool in tools:
        declared = _either(tool, "functionDeclarations", "function_declarations")
        for function in objects(declared or [], where="tools.functionDeclarations"):
            schema = _either(function, "parameters", "parametersJsonSchema") or {}
            yield {
                "type": "function",
                "function": {
                    "name": function.get("name"),
                    "description": function.get("description", ""),
                    "parameters": schema,
                },
            }


def reply_body(reply: WireReply) -> bytes:
    """Return a `GenerateContentResponse`; its bytes depend on `reply` alone."""
    text: list[JSON] = [{"text": reply.text}] if reply.text else []
    parts = [*text, *map(function_call, reply.calls)]
    return compact(response(reply, parts, last=True)).encode()


def response(reply: WireReply, parts: list[JSON], *, last: bool) -> dict[str, JSON]:
    """Return an answer or one piece of it; only the last piece has a reason and the usage."""
    candidate: dict[str, JSON] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = STOP_REASONS[reply.reason]
    return {
        "candidates": [candidate],
        **(usage_field(reply.usage) if last else {}),
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def function_call(call: WireToolCall) -> JSON:
    """Return the part of a call. Arguments that are no JSON, which this format cannot hold, stay a string."""
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = call.arguments
    return {"functionCall": {"id": call.id, "name": call.name, "args": given}}


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the field `usageMetadata`, or nothing for a reply without usage."""
    if usage is None:
        return {"usageMetadata": None}
    if not usage.present:
        return {}
    counts: dict[str, JSON] = {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.completion,
        "cachedContentTokenCount": usage.cached,
    }
    if usage.prompt is not None and usage.completion is not None:
        counts["totalTokenCount"] = usage.prompt + usage.completion
    return {"usageMetadata": counts if usage.cost is None else {**counts, "cost": float(usage.cost)}}


def error_body(status: int, message: str) -> bytes:
    """Return `{"error": {"code", "message", "status"}}` with Google's name for the status."""
    name = _STATUS_NAMES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return compact({"error": {"code": status, "message": message, "status": name}}).encode()
