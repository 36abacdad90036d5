"""Gemini's generateContent as STATEK's client speaks it: build a request, read a reply (behaviour 12).

As in STATEK: the model is in the URL; only the system prompt is sent, other system messages are dropped; an empty
user message is dropped; the result of a tool is a content of its own with the role `function`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypedDict

from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    ToolCallRequest,
    reported_cost,
    reported_tokens,
)
from statek_sim.providers.wire.request import NATIVE_GEMINI, PLAIN, Asked, ClientOptions, split_prompt
from statek_sim.values import JSON, Message, ToolSpec

UNNAMED = "tool_result"
"""The name of a result whose call is not known."""

SCHEMA_FIELDS: Final = frozenset(
    {
        "additionalProperties", "anyOf", "default", "defs", "description", "enum", "example", "format", "items",
        "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
        "nullable", "pattern", "properties", "propertyOrdering", "ref", "required", "title", "type",
    }
)  # fmt: skip
"""What `Schema`, the API's own kind, has (google-genai's type); any other member is a 400."""

_NAMED: Final = ("properties", "defs")


class _Usage(TypedDict, total=False):
    promptTokenCount: JSON
    candidatesTokenCount: JSON
    cachedContentTokenCount: JSON
    cost: JSON


def request_url(api_url: str, model: str) -> str:
    """Return the address of the model: the place of `{model}`, or behind a URL that names no method."""
    if "{model}" in api_url:
        return api_url.format(model=model)
    if api_url.endswith(":generateContent"):
        return api_url
    return f"{api_url.rstrip('/')}/{model}:generateContent"


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return the headers of a request."""
    return {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}


def request_body(request: Asked, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return the body of a request, keys in STATEK's order."""
    prompt, messages = split_prompt(request.messages)
    body: dict[str, JSON] = {"contents": _contents(messages)}
    if prompt:
        body["systemInstruction"] = {"parts": [{"text": prompt}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declared(spec) for spec in request.tools]}]
    config: dict[str, JSON] = {}
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if options.max_tokens is not None:
        config["maxOutputTokens"] = options.max_tokens
    if config:
        body["generationConfig"] = config
    return body


def _contents(messages: Sequence[Message]) -> list[JSON]:
    contents: list[JSON] = []
    open_calls: list[tuple[JSON, JSON]] = []
    for message in messages:
        content = message.get("content")
        match message.get("role"):
            case "tool":
                contents.append(_result(message, _name(message.get("tool_call_id"), open_calls)))
            case "user":
                if content:
                    contents.append({"role": "user", "parts": [{"text": content}]})
            case _:
                open_calls = _calls(message)
                contents.extend(_turn(message))
    return contents


def _calls(message: Message) -> list[tuple[JSON, JSON]]:
    """Return id and name of a turn's calls."""
    calls = message.get("tool_calls")
    found: list[tuple[JSON, JSON]] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            found.append((call.get("id", ""), function.get("name")))
    return found


def _name(call_id: JSON, open_calls: list[tuple[JSON, JSON]]) -> JSON:
    """Return the name of the call that a result belongs to, and close the call: ids may come twice."""
    for number, (known, name) in enumerate(open_calls):
        if known == call_id:
            del open_calls[number]
            return name
    return UNNAMED


def _result(message: Message, name: JSON) -> JSON:
    answer: dict[str, JSON] = {"name": name, "response": {"content": message.get("content") or ""}}
    return {"role": "function", "parts": [{"functionResponse": answer}]}


def _turn(message: Message) -> list[JSON]:
    """Return the content of one turn; none for a turn that said nothing."""
    native = message.get(NATIVE_GEMINI)
    if native is not None:
        return [{"role": "model", "parts": native}]
    content, calls = message.get("content"), message.get("tool_calls")
    parts: list[JSON] = [{"text": content}] if content else []
    parts.extend(map(_function_call, calls if isinstance(calls, list) else ()))
    return [{"role": "model", "parts": parts}] if parts else []


def _function_call(call: JSON) -> JSON:
    assert isinstance(call, dict), "messages are in OpenAI's shape"
    function = call["function"]
    assert isinstance(function, dict), "messages are in OpenAI's shape"
    return {"functionCall": {"name": function["name"], "args": json.loads(str(function["arguments"]))}}


def _declared(spec: ToolSpec) -> JSON:
    function = spec["function"]
    assert isinstance(function, dict), "tools are in OpenAI's shape"
    return declaration(function["name"], function["description"], function["parameters"])


def read_reply(body: bytes) -> ParsedReply:
    """Read the body of a successful answer; what STATEK cannot read raises what STATEK raises.

    Without candidates that is `RuntimeError("VertexAI API error: ...")`. Parts marked as thoughts are no text;
    a call without an id has its name as one, and arguments that are no object are none.
    """
    answer = json.loads(body)
    candidates = answer.get("candidates") or []
    if not candidates:
        reason = answer.get("error", {}).get("message", str(answer))
        raise RuntimeError(f"VertexAI API error: {reason}")
    parts = candidates[0].get("content", {}).get("parts", [])
    text, calls = "", []
    for part in parts:
        if "text" in part and not part.get("thought"):
            text += part.get("text", "")
        if "functionCall" in part:
            calls.append(_requested(part["functionCall"]))
    thought = any(part.get("thought") or "thoughtSignature" in part for part in parts)
    usage = _reported_usage(answer["usageMetadata"]) if "usageMetadata" in answer else NO_USAGE
    return ParsedReply(text, tuple(calls), usage, {NATIVE_GEMINI: parts} if thought else None)


class _FunctionCall(TypedDict, total=False):
    id: JSON
    name: str
    args: JSON


def _requested(call: _FunctionCall) -> ToolCallRequest:
    name, given = call.get("name"), call.get("args", {})
    arguments = given if isinstance(given, dict) else {}
    return ToolCallRequest(call.get("id") or name or "", name, arguments)  # type: ignore[arg-type]  # as it came


def _reported_usage(usage: _Usage) -> ReportedUsage:
    cost = usage.get("cost")
    return ReportedUsage(
        prompt=reported_tokens(usage.get("promptTokenCount", 0)),
        completion=reported_tokens(usage.get("candidatesTokenCount", 0)),
        cached=reported_tokens(usage.get("cachedContentTokenCount", 0)),
        cost=reported_cost(cost),
    )


def declaration(name: JSON, description: JSON, parameters: JSON) -> dict[str, JSON]:
    """Return the entry of `functionDeclarations`.

    Parameters stand under `parameters`, as STATEK sends them, and under `parametersJsonSchema` where they say what the
    API's own `Schema` has no word for: `$ref`, `$schema`, `const`, `oneOf`, a list of types.
    """
    plain = isinstance(parameters, dict) and all(_plain(part) for part in _schemas(parameters))
    member = "parameters" if plain else "parametersJsonSchema"
    return {"name": name, "description": description, member: parameters}


def _plain(schema: Mapping[str, JSON]) -> bool:
    return schema.keys() <= SCHEMA_FIELDS and not isinstance(schema.get("type"), list)


def _schemas(schema: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    """Yield a schema and those inside it."""
    yield schema
    inner: list[JSON] = [schema.get("items"), schema.get("additionalProperties")]
    for key in _NAMED:
        named = schema.get(key)
        inner += list(named.values()) if isinstance(named, dict) else []
    either = schema.get("anyOf")
    inner += either if isinstance(either, list) else []
    for part in inner:
        if isinstance(part, dict):
            yield from _schemas(part)
