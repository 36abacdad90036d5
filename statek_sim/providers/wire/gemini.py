"""Gemini's generateContent as a provider speaks it, whole or streamed (`alt=sse`): read a request, write an answer.

The client's side is `gemini_client`; with it this module is one `WireFormat`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire import encoding
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.format import FormatName, Split
from statek_sim.providers.wire.gemini_client import read_reply as read_reply
from statek_sim.providers.wire.gemini_client import request_body as request_body
from statek_sim.providers.wire.gemini_client import request_headers as request_headers
from statek_sim.providers.wire.gemini_client import request_url as request_url
from statek_sim.providers.wire.parameters import GEMINI, GEMINI_CONFIG
from statek_sim.providers.wire.reply import NO_USAGE, ReportedUsage, StopReason, WireReply, WireToolCall
from statek_sim.providers.wire.request import (
    NATIVE_GEMINI,
    Demands,
    WireRequest,
    limit_of,
    number_or_none,
    objects,
    stops_of,
    text_of,
)
from statek_sim.values import JSON, Message

NAME: Final[FormatName] = "gemini"


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield the text piece by piece, then each call whole; the last event has the reason and the usage."""
    shown = reply if usage else replace(reply, usage=NO_USAGE)
    for index, choice in enumerate((reply, *reply.others)):
        parts: list[JSON] = [{"text": piece} for piece in (split(choice.text) if choice.text else ())]
        parts.extend(map(function_call, choice.calls))
        for part in parts[:-1]:
            yield encoding.event(
                compact(response(shown, [candidate(choice, [part], index, last=False)], last=False))
            )
        ending = candidate(choice, parts[-1:], index, last=True)
        yield encoding.event(compact(response(shown, [ending], last=index == len(reply.others))))


def join_stream(stream: bytes) -> bytes:
    """Return the response that the events add up to, texts in a row joined.

    `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    parts: dict[int, list[dict[str, Any]]] = {}
    for data in encoding.events(stream):
        piece = json.loads(data)
        for found in piece.get("candidates") or ():
            index = found.get("index", 0)
            for part in (found.get("content") or {}).get("parts") or ():
                _add(part, parts.setdefault(index, []))
            candidates.setdefault(index, {}).update(found)
        answer.update(piece)
    if candidates:
        answer["candidates"] = [
            {
                **whole,
                "content": {**(whole.get("content") or {"role": "model"}), "parts": parts.get(index, [])},
            }
            for index, whole in sorted(candidates.items())
        ]
    return compact(answer).encode()


def _add(part: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    if parts and set(part) == {"text"} == set(parts[-1]):
        parts[-1] = {"text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)


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

_MOST_CANDIDATES: Final = 128
_UNDERSCORE: Final = re.compile(r"_([a-z])")

_METHOD: Final = re.compile(
    r"(?:^|/)(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent|countTokens)(?:\?.*)?$"
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
    if named["method"] == "countTokens" and "contents" not in body:
        body = _object(_either(body, "generateContentRequest", "generate_content_request"), "the body")
    contents = objects(body.get("contents"), where="contents")
    config = _camel(_object(_either(body, "generationConfig", "generation_config"), "generationConfig"))
    named_members = _camel(body)
    return WireRequest(
        model=named["model"],
        messages=(
            *_prompt(_either(body, "systemInstruction", "system_instruction")),
            *(
                heard
                for number, content in enumerate(contents)
                for heard in _said(content, f"contents[{number}]")
            ),
        ),
        tools=tuple(_tools(objects(body.get("tools") or [], where="tools"))),
        temperature=number_or_none(config, "temperature"),
        demands=_demands(config, _either(body, "toolConfig", "tool_config")),
        stream=named["method"] == "streamGenerateContent",
        stream_usage=True,
        unheeded=(
            *GEMINI.unheeded(named_members),
            *GEMINI_CONFIG.unheeded(config, within="generationConfig."),
        ),
        wrong=(*GEMINI.wrong(named_members), *GEMINI_CONFIG.wrong(config, within="generationConfig.")),
    )


def _demands(config: Mapping[str, JSON], tool_config: JSON) -> Demands:
    given = _object(tool_config, "toolConfig")
    calling = _object(
        _either(given, "functionCallingConfig", "function_calling_config"), "functionCallingConfig"
    )
    mode, names = calling.get("mode"), _either(calling, "allowedFunctionNames", "allowed_function_names")
    return Demands(
        choices=_candidates(config) or 1,
        stop=stops_of(config.get("stopSequences"), where="generationConfig.stopSequences"),
        max_tokens=limit_of(
            number_or_none(config, "maxOutputTokens"), where="generationConfig.maxOutputTokens"
        ),
        json_object=config.get("responseMimeType") == "application/json",
        calls="must" if mode == "ANY" else "must not" if mode == "NONE" else "may",
        call_names=tuple(map(str, names)) if isinstance(names, list) else (),
    )


def _candidates(config: Mapping[str, JSON]) -> int | None:
    """Return how many candidates are wanted; so many as 128, as with OpenAI, are enough to test with."""
    where = "generationConfig.candidateCount"
    wanted = limit_of(number_or_none(config, "candidateCount"), where=where)
    if wanted is not None and wanted > _MOST_CANDIDATES:
        raise BadRequest(f"{where}: expected at most {_MOST_CANDIDATES}, got {wanted}", parameter=where)
    return wanted


def _camel(mapping: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the fields by the names that the documents give them: the API takes `max_output_tokens` too."""
    return {_UNDERSCORE.sub(lambda found: found[1].upper(), key): value for key, value in mapping.items()}


def _either(mapping: Mapping[str, JSON], camel: str, snake: str) -> JSON:
    """Return a field by either of its names: the API takes both."""
    return mapping.get(camel, mapping.get(snake))


def _object(value: JSON, where: str) -> dict[str, JSON]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{where}: expected an object, got {value!r}")
    return value


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
    if role not in ("user", "function", "tool"):
        raise BadRequest(f"{where}.role: expected 'user', 'model', 'function' or 'tool', got {role!r}")
    declarations: list[JSON] = []
    for part in parts:
        response = _either(part, "functionResponse", "function_response")
        if response is None:
            declarations.append(part)
            continue
        if declarations:
            yield {"role": "user", "content": text_of(declarations, where=where)}
            declarations = []
        yield _result(_object(response, f"{where}.functionResponse"))
    if declarations:
        yield {"role": "user", "content": text_of(declarations, where=where)}


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
    candidates = [
        candidate(choice, [*_text_parts(choice), *map(function_call, choice.calls)], index, last=True)
        for index, choice in enumerate((reply, *reply.others))
    ]
    return compact(response(reply, candidates, last=True)).encode()


def _text_parts(reply: WireReply) -> list[JSON]:
    return [{"text": reply.text}] if reply.text else []


def candidate(reply: WireReply, parts: list[JSON], index: int, *, last: bool) -> JSON:
    """Return one candidate, or a piece of it; only the last piece has a reason."""
    reason: dict[str, JSON] = {"finishReason": STOP_REASONS[reply.reason]} if last else {}
    return {"content": {"role": "model", "parts": parts}, "index": index, **reason}


def response(reply: WireReply, candidates: list[JSON], *, last: bool) -> dict[str, JSON]:
    """Return an answer or one piece of it; only the last piece has the usage."""
    return {
        "candidates": candidates,
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


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"error": {"code", "message", "status"}}` with Google's name for the status."""
    name = _STATUS_NAMES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return compact({"error": {"code": status, "message": message, "status": name}}).encode()
