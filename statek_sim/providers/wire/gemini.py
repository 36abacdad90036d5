"""Gemini's generateContent as a `WireFormat`.

The first half implements the provider, which parses requests and writes responses, streamed or not. The second half
implements STATEK's client (behaviour 12): it puts the model in the URL, drops empty user messages and all system
messages after the system prompt, and sends a tool result as a content object with the role `function`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypedDict

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.parameters import refused_parameters
from statek_sim.providers.wire.reply import (
    NO_USAGE,
    SIGNATURE,
    ParsedReply,
    ReportedUsage,
    ScoredToken,
    Split,
    StopReason,
    ToolCallRequest,
    WireReply,
    WireToolCall,
    compact,
    json_arguments,
    pieces_of,
    reported_usage,
    sse_event,
    sse_events,
    usage_member,
)
from statek_sim.providers.wire.request import (
    NATIVE_GEMINI,
    PLAIN,
    ClientOptions,
    Demands,
    FormatName,
    RequestContent,
    WireRequest,
    body_object,
    calls_of,
    function_of,
    limit_of,
    number_or_none,
    objects,
    openai_call,
    openai_tool,
    split_prompt,
    stops_of,
    text_of,
    user_messages,
)
from statek_sim.values import JSON, Message, ToolSpec

NAME: Final[FormatName] = "gemini"


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a response's events: text in pieces, then each call. The last event has the finish reason and usage."""
    shown = reply if usage else replace(reply, usage=NO_USAGE)
    parts: list[tuple[JSON, list[ScoredToken]]] = []
    parts += [({"text": piece, "thought": True}, []) for piece in pieces_of(reply.thinking, split)]
    if not reply.refuses:
        parts += [({"text": piece}, [token] if token else []) for piece, token in reply.pieces(split)]
    parts += [(call, []) for call in function_calls(reply)]
    for part, tokens in parts[:-1]:
        yield sse_event(compact(response(shown, [part], tokens, last=False)))
    last, tokens = ([parts[-1][0]], parts[-1][1]) if parts else ([], [])
    yield sse_event(compact(response(shown, last, tokens, last=True)))


def join_stream(stream: bytes) -> bytes:
    """Assemble a stream's events into a response, joining consecutive text parts.

    Raises `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    parts: dict[int, list[dict[str, Any]]] = {}
    for data in sse_events(stream):
        piece = json.loads(data)
        for found in piece.get("candidates") or ():
            index = found.get("index", 0)
            for part in (found.get("content") or {}).get("parts") or ():
                _add(part, parts.setdefault(index, []))
            whole = candidates.setdefault(index, {})
            scores = _joined_scores(whole.get("logprobsResult"), found.get("logprobsResult"))
            whole.update(found, **({"logprobsResult": scores} if scores else {}))
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


def _joined_scores(before: Any, now: Any) -> dict[str, Any]:
    """Merge the `logprobsResult` of two stream events."""
    both = [one for one in (before, now) if isinstance(one, dict)]
    return {
        key: [item for one in both for item in one.get(key) or ()]
        for key in ("chosenCandidates", "topCandidates")
        if any(key in one for one in both)
    }


def _add(part: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    if parts and set(part) in ({"text"}, {"text", "thought"}) and set(part) == set(parts[-1]):
        parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
    else:
        parts.append(part)


STOP_REASONS: Final[Mapping[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
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

_UNDERSCORE: Final = re.compile(r"_([a-z])")

_METHOD: Final = re.compile(
    r"(?:^|/)(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent|countTokens)(?:\?.*)?$"
)


def read_request(body: JSON, url: str = "") -> WireRequest:
    """Parse a request body; `url`, or its path, ends in `MODEL:generateContent` or `MODEL:streamGenerateContent`.

    A call or tool result without an id gets the function name as its id. Raises `BadRequest` for an invalid request.
    """
    named = _METHOD.search(url)
    if named is None:
        raise BadRequest(
            f"expected a URL that ends in MODEL:generateContent or MODEL:streamGenerateContent, got {url!r}"
        )
    body = body_object(documented(body))
    if named["method"] == "countTokens" and "contents" not in body:
        body = _object(body.get("generateContentRequest"), "the body")
    contents = objects(body.get("contents"), where="contents")
    config = _object(body.get("generationConfig"), "generationConfig")
    return WireRequest(
        model=named["model"],
        messages=(
            *_prompt(body.get("systemInstruction")),
            *_answered(
                converted
                for number, content in enumerate(contents)
                for converted in _openai_messages(content, f"contents[{number}]")
            ),
        ),
        tools=tuple(_tools(objects(body.get("tools") or [], where="tools"))),
        temperature=number_or_none(config, "temperature"),
        demands=_demands(config, body.get("toolConfig")),
        stream=named["method"] == "streamGenerateContent",
        stream_usage=True,
        refused=(
            *refused_parameters("gemini", body),
            *refused_parameters("gemini_config", config, within="generationConfig."),
        ),
        thinks=needs_signatures(named["model"]),
        shows_thinking=_includes_thoughts(config) or "generationConfig.thinkingConfig.includeThoughts",
        logprobs=config.get("responseLogprobs") is True or "generationConfig.responseLogprobs",
    )


def _includes_thoughts(config: Mapping[str, JSON]) -> bool:
    thinking = config.get("thinkingConfig")
    return isinstance(thinking, dict) and thinking.get("includeThoughts") is True


def _demands(config: Mapping[str, JSON], tool_config: JSON) -> Demands:
    given = _object(tool_config, "toolConfig")
    calling = _object(given.get("functionCallingConfig"), "functionCallingConfig")
    mode, names = calling.get("mode"), calling.get("allowedFunctionNames")
    return Demands(
        stop=stops_of(config.get("stopSequences"), where="generationConfig.stopSequences"),
        max_tokens=limit_of(
            number_or_none(config, "maxOutputTokens"), where="generationConfig.maxOutputTokens"
        ),
        json_object=config.get("responseMimeType") == "application/json",
        calls="must" if mode == "ANY" else "must not" if mode == "NONE" else "may",
        call_names=tuple(map(str, names)) if isinstance(names, list) else (),
    )


_USERS_OWN: Final = frozenset(
    {
        "args",
        "labels",
        "parameters",
        "parametersJsonSchema",
        "response",
        "responseJsonSchema",
        "responseSchema",
    }
)
"""Keys whose inner names are chosen by the user and therefore left unchanged."""


def documented(value: JSON) -> JSON:
    """Return a body with its keys in camel case; the API also accepts snake case, such as `tool_config`."""
    if isinstance(value, list):
        return [documented(item) for item in value]
    if not isinstance(value, dict):
        return value
    named: dict[str, JSON] = {}
    for key, inner in value.items():
        name = _UNDERSCORE.sub(lambda found: found[1].upper(), key)
        named[name] = inner if name in _USERS_OWN else documented(inner)
    return named


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


def _openai_messages(content: dict[str, JSON], where: str) -> Iterator[Message]:
    """Convert a content object to messages in the OpenAI format, in which each tool result is a separate message."""
    role, parts = content.get("role", "user"), objects(content.get("parts"), where=f"{where}.parts")
    if role == "model":
        yield _turn(parts, where)
        return
    if role not in ("user", "function", "tool"):
        raise BadRequest(f"{where}.role: expected 'user', 'model', 'function' or 'tool', got {role!r}")
    yield from user_messages(parts, partial(_result, where=where), where=where)


def _answered(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages. A tool result without an id gets the id of the function's first call without a result.

    google-genai omits the id when it calls a Python function itself.
    """
    waiting: list[tuple[JSON, JSON]] = []
    for message in messages:
        if message.get("role") == "assistant":
            waiting = _calls(message)
        given = message.get("tool_call_id")
        found = next((call for call in waiting if given and given in call), None)
        if found is None:
            yield message
        else:
            waiting.remove(found)
            yield {**message, "tool_call_id": found[0]}


_WRAPPERS: Final = ({"content"}, {"output"}, {"result"})
"""Members in which clients wrap a tool result's text, because the API requires an object.

They are used by STATEK, Google's documentation and google-genai.
"""


def _result(part: Mapping[str, JSON], where: str) -> Message | None:
    if part.get("functionResponse") is None:
        return None
    response = _object(part["functionResponse"], f"{where}.functionResponse")
    given = response.get("response")
    text = next(iter(given.values())) if isinstance(given, dict) and set(given) in _WRAPPERS else None
    return {
        "role": "tool",
        "content": text if isinstance(text, str) else json.dumps(given),
        "tool_call_id": response.get("id") or response.get("name", ""),
    }


def _turn(parts: list[dict[str, JSON]], where: str) -> Message:
    texts: list[JSON] = [part for part in parts if set(part) == {"text"}]
    calls = [_call(part, where) for part in parts if part.get("functionCall")]
    turn: dict[str, JSON] = {"role": "assistant", "content": text_of(texts, where=where) if texts else None}
    if calls:
        turn["tool_calls"] = calls
    if any("thought" in part or "thoughtSignature" in part for part in parts):
        turn[NATIVE_GEMINI] = list(parts)
    return turn


def _call(part: Mapping[str, JSON], where: str) -> JSON:
    call = _object(part.get("functionCall"), f"{where}.functionCall")
    arguments = json.dumps(call.get("args", {}))
    return openai_call(call.get("id") or call.get("name", ""), call.get("name"), arguments)


def _tools(tools: list[dict[str, JSON]]) -> Iterator[dict[str, JSON]]:
    for tool in tools:
        declared = tool.get("functionDeclarations")
        for function in objects(declared or [], where="tools.functionDeclarations"):
            schema = function.get("parameters", function.get("parametersJsonSchema")) or {}
            yield openai_tool(function.get("name"), function.get("description", ""), schema)


def reply_body(reply: WireReply) -> bytes:
    """Serialize a reply as a `GenerateContentResponse`; equal replies give equal bytes."""
    thought: list[JSON] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    text = shown_text(reply)
    texts: list[JSON] = [{"text": text}] if text else []
    parts = [*thought, *texts, *function_calls(reply)]
    return compact(response(reply, parts, reply.scored, last=True)).encode()


def shown_text(reply: WireReply) -> str:
    """Return a reply's text; empty for a refusal."""
    return "" if reply.refuses else reply.text or ""


def response(
    reply: WireReply, parts: list[JSON], tokens: Sequence[ScoredToken], *, last: bool
) -> dict[str, JSON]:
    """Return a response, or an event in a stream; only the `last` event has a finish reason, citations and usage."""
    more: dict[str, JSON] = {"finishReason": STOP_REASONS[reply.reason]} if last else {}
    if tokens:
        more["logprobsResult"] = logprobs_result(tokens)
    if last and reply.cited:
        more["groundingMetadata"] = grounding(reply)
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **more}],
        **(usage_field(reply.usage) if last else {}),
        "modelVersion": reply.model,
        "responseId": reply.id,
    }


def logprobs_result(tokens: Sequence[ScoredToken]) -> dict[str, JSON]:
    """Return the `logprobsResult` for tokens. Source: `LogprobsResult` in the `google-genai` SDK."""
    ranked: list[JSON] = [
        {"candidates": [_candidate(text, logprob) for text, logprob in token.ranked]} for token in tokens
    ]
    chosen: list[JSON] = [_candidate(token.text, token.logprob) for token in tokens]
    return {"chosenCandidates": chosen, "topCandidates": ranked}


def _candidate(text: str, logprob: float) -> dict[str, JSON]:
    return {"token": text, "logProbability": logprob}


def grounding(reply: WireReply) -> dict[str, JSON]:
    """Return a reply's `groundingMetadata`: the cited pages, and the text segments, indexed in bytes.

    Source: `GroundingMetadata` in the `google-genai` SDK.
    """
    text = reply.text or ""
    chunks: list[JSON] = [{"web": {"uri": cited.url, "title": cited.title}} for *_, cited in reply.cited]
    supports: list[JSON] = [
        {
            "segment": {
                "startIndex": len(text[:start].encode()),
                "endIndex": len(text[:end].encode()),
                "text": text[start:end],
            },
            "groundingChunkIndices": [number],
        }
        for number, (start, end, _) in enumerate(reply.cited)
    ]
    return {"groundingChunks": chunks, "groundingSupports": supports}


def function_calls(reply: WireReply) -> list[JSON]:
    """Return the parts for a reply's calls; for a thinking model, the first call is signed."""
    parts = [function_call(call) for call in reply.calls]
    if parts and reply.thinks:
        parts[0] = {**parts[0], "thoughtSignature": SIGNATURE}
    return [*parts]


def needs_signatures(model: str) -> bool:
    """Return whether a model requires signatures on calls that are sent back, as Gemini 3 and later do.

    https://ai.google.dev/gemini-api/docs/thought-signatures
    """
    version = re.search(r"gemini-(\d+)", model)
    return version is not None and int(version[1]) >= 3


def function_call(call: WireToolCall) -> dict[str, JSON]:
    """Return the part for a call; arguments that are not valid JSON are kept as a string."""
    return {"functionCall": {"id": call.id, "name": call.name, "args": json_arguments(call.arguments)}}


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the `usageMetadata` field, or an empty dict for a reply without usage."""
    counted = usage or NO_USAGE
    counts: dict[str, JSON] = {
        "promptTokenCount": counted.prompt,
        "candidatesTokenCount": counted.completion,
        "cachedContentTokenCount": counted.cached,
    }
    return usage_member("usageMetadata", usage, counts, total="totalTokenCount")


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"error": {"code", "message", "status"}}` with Google's name for the status."""
    name = _STATUS_NAMES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return compact({"error": {"code": status, "message": message, "status": name}}).encode()


UNNAMED = "tool_result"
"""The function name for a tool result without a matching call."""

SCHEMA_FIELDS: Final = frozenset(
    {
        "additionalProperties", "anyOf", "default", "defs", "description", "enum", "example", "format", "items",
        "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
        "nullable", "pattern", "properties", "propertyOrdering", "ref", "required", "title", "type",
    }
)  # fmt: skip
"""The keys that the API accepts in a `Schema` (source: google-genai); any other key causes a 400 error."""

_NAMED: Final = ("properties", "defs")


_COUNTS: Final = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
"""The `usageMetadata` keys for prompt, completion and cached tokens."""


def request_url(api_url: str, model: str) -> str:
    """Return a request's URL: `api_url` with `{model}` replaced, or with the model and the method appended."""
    if "{model}" in api_url:
        return api_url.format(model=model)
    if api_url.endswith(":generateContent"):
        return api_url
    return f"{api_url.rstrip('/')}/{model}:generateContent"


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return a request's HTTP headers, including the API key."""
    return {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}


def request_body(request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return a request's JSON body, with keys in STATEK's order."""
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
                contents.append(_function_response(message, _name(message.get("tool_call_id"), open_calls)))
            case "user":
                if content:
                    contents.append({"role": "user", "parts": [{"text": content}]})
            case _:
                open_calls = _calls(message)
                contents.extend(_model_content(message))
    return contents


def _calls(message: Message) -> list[tuple[JSON, JSON]]:
    """Return the id and the function name of each call in a message."""
    return [(call_id, name) for call_id, name, _ in calls_of(message)]


def _name(call_id: JSON, open_calls: list[tuple[JSON, JSON]]) -> JSON:
    """Return the function name of a tool result's call, and remove the call, because ids may repeat or be missing."""
    for number, (known, name) in enumerate(open_calls):
        if (known or "") == (call_id or ""):
            del open_calls[number]
            return name
    return UNNAMED


def _function_response(message: Message, name: JSON) -> JSON:
    answer: dict[str, JSON] = {"name": name, "response": {"content": message.get("content") or ""}}
    return {"role": "function", "parts": [{"functionResponse": answer}]}


def _model_content(message: Message) -> list[JSON]:
    """Return an assistant message's content as a list; empty for an empty message."""
    native = message.get(NATIVE_GEMINI)
    if native is not None:
        return [{"role": "model", "parts": native}]
    content, calls = message.get("content"), message.get("tool_calls")
    parts: list[JSON] = [{"text": content}] if content else []
    parts.extend(map(_function_call, calls if isinstance(calls, list) else ()))
    return [{"role": "model", "parts": parts}] if parts else []


def _function_call(call: JSON) -> JSON:
    function = function_of(call)
    return {"functionCall": {"name": function["name"], "args": json.loads(str(function["arguments"]))}}


def _declared(spec: ToolSpec) -> JSON:
    function = function_of(dict(spec))
    return declaration(function["name"], function["description"], function["parameters"])


def read_reply(body: bytes) -> ParsedReply:
    """Parse the body of a successful response; raises STATEK's error for a body that STATEK cannot parse.

    A response without candidates raises `RuntimeError("VertexAI API error: ...")`. Thoughts are not part of the text. A
    call without an id gets the function name as its id, and arguments that are not an object are dropped.
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
    usage = reported_usage(answer["usageMetadata"], *_COUNTS) if "usageMetadata" in answer else NO_USAGE
    return ParsedReply(text, tuple(calls), usage, {NATIVE_GEMINI: parts} if thought else None)


class _FunctionCall(TypedDict, total=False):
    id: JSON
    name: str
    args: JSON


def _requested(call: _FunctionCall) -> ToolCallRequest:
    name, given = call.get("name"), call.get("args", {})
    arguments = given if isinstance(given, dict) else {}
    return ToolCallRequest(call.get("id") or name or "", name, arguments)  # type: ignore[arg-type]  # as it came


def declaration(name: JSON, description: JSON, parameters: JSON) -> dict[str, JSON]:
    """Return a tool's entry in `functionDeclarations`.

    The schema is in `parameters`, where STATEK sends it, or in `parametersJsonSchema` if it uses a keyword that the
    API's `Schema` does not support: `$ref`, `$schema`, `const`, `oneOf`, or a list of types.
    """
    plain = isinstance(parameters, dict) and all(_plain(part) for part in _schemas(parameters))
    member = "parameters" if plain else "parametersJsonSchema"
    return {"name": name, "description": description, member: parameters}


def _plain(schema: Mapping[str, JSON]) -> bool:
    return schema.keys() <= SCHEMA_FIELDS and not isinstance(schema.get("type"), list)


def _schemas(schema: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    """Yield a JSON Schema and all its subschemas."""
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
