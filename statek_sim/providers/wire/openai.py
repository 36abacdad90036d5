"""OpenAI chat completions as a `WireFormat`.

The first half implements the provider, which parses requests and writes responses, streamed or not. The second half
implements STATEK's client, which builds requests and parses replies. `read_reply` raises the same exceptions as STATEK
1.2.5 to 1.4.2 (behaviour 5, 6.6 and 12), with Python's own messages for a malformed body, because the message becomes
the job's error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.parameters import Refusal, refused_parameters
from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    ScoredToken,
    Split,
    WireReply,
    WireToolCall,
    compact,
    pieces_of,
    read_tool_call,
    reported_usage,
    sse_event,
    sse_events,
    usage_member,
)
from statek_sim.providers.wire.request import (
    NO_DEMANDS,
    PLAIN,
    ClientOptions,
    Demands,
    FormatName,
    RequestContent,
    WireRequest,
    body_object,
    limit_of,
    member,
    number_or_none,
    objects,
    openai_call,
    stops_of,
    text_of,
)
from statek_sim.values import JSON

NAME: Final[FormatName] = "openai"

DONE: Final = "[DONE]"


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a stream's chunks: the role, the text in pieces, each call's name and arguments, the finish reason.

    With `usage` (the client's `stream_options.include_usage`), a final chunk without choices contains the usage, which
    is `null` in all other chunks. For a reply without usage, both are left out.
    """
    reported = usage and (reply.usage is None or reply.usage.present)

    def chunk(choice: dict[str, JSON]) -> bytes:
        return sse_event(
            compact(completion(reply, "chat.completion.chunk", [choice], {"usage": None} if reported else {}))
        )

    for delta, token in _deltas(reply, split):
        scores: dict[str, JSON] = {"logprobs": logprobs_field([token])} if token else {}
        yield chunk({"index": 0, "delta": delta, **scores, "finish_reason": None})
    yield chunk({"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)})
    if reported:
        yield sse_event(compact(completion(reply, "chat.completion.chunk", [], usage_field(reply.usage))))
    yield sse_event(DONE)


def completion(reply: WireReply, kind: str, choices: list[JSON], usage: dict[str, JSON]) -> dict[str, JSON]:
    """Return a completion or a completion chunk; `kind` is the value of `object`."""
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
        "choices": choices,
        **usage,
    }


def _deltas(reply: WireReply, split: Split) -> Iterator[tuple[dict[str, JSON], ScoredToken | None]]:
    yield {"role": "assistant", "content": None if reply.text is None or reply.refuses else ""}, None
    for piece in pieces_of(reply.thinking, split):
        yield {"reasoning_content": piece}, None
    for piece, token in reply.pieces(split):
        yield {"refusal" if reply.refuses else "content": piece}, token
    if reply.citations:
        yield {"annotations": url_citations(reply)}, None
    for index, call in enumerate(reply.calls):
        yield from ((delta, None) for delta in _call_deltas(index, call, split))


def url_citations(reply: WireReply) -> list[JSON]:
    """Return a message's `annotations`; `end_index` is exclusive.

    Source: `ChatCompletionMessage.annotations` in the `openai` SDK.
    """
    return [
        {
            "type": "url_citation",
            "url_citation": {"start_index": start, "end_index": end, "title": cited.title, "url": cited.url},
        }
        for start, end, cited in reply.cited
    ]


def logprobs_field(tokens: Sequence[ScoredToken]) -> dict[str, JSON]:
    """Return a choice's `logprobs`. Source: `ChatCompletionTokenLogprob` in the `openai` SDK."""
    return {"content": [logprob_entry(token) for token in tokens], "refusal": None}


def logprob_entry(token: ScoredToken) -> dict[str, JSON]:
    """Return a token's log probability, with those of alternative tokens."""
    return {
        **_scored(token.text, token.logprob),
        "top_logprobs": [_scored(text, logprob) for text, logprob in token.ranked],
    }


def _scored(text: str, logprob: float) -> dict[str, JSON]:
    return {"token": text, "logprob": logprob, "bytes": [*text.encode()]}


def _call_deltas(index: int, call: WireToolCall, split: Split) -> Iterator[dict[str, JSON]]:
    yield {"tool_calls": [{"index": index, **openai_call(call.id, call.name, "")}]}
    for piece in pieces_of(call.arguments, split):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def join_stream(stream: bytes) -> bytes:
    """Assemble a stream's chunks into a `chat.completion`.

    Raises `ValueError` for a chunk that is not JSON.
    """
    answer: dict[str, Any] = {}
    choices: dict[int, _Choice] = {0: _Choice()}
    for data in sse_events(stream):
        if data == DONE:
            continue
        chunk = json.loads(data)
        answer.update({key: value for key, value in chunk.items() if key not in ("choices", "object")})
        for choice in chunk.get("choices") or ():
            found = choices.setdefault(choice.get("index", 0), _Choice())
            found.reason = choice.get("finish_reason") or found.reason
            found.scores += (choice.get("logprobs") or {}).get("content") or ()
            _add(choice.get("delta") or {}, found.message, found.calls)
    if answer.get("usage", "") is None:
        del answer["usage"]
    listed: list[JSON] = [choices[index].whole(index) for index in sorted(choices)]
    usage = {"usage": answer.pop("usage")} if "usage" in answer else {}
    return compact({**answer, "object": "chat.completion", "choices": listed, **usage}).encode()


class _Choice:
    """One choice in a streamed response, as received so far."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"role": "assistant", "content": None}
        self.calls: dict[int, dict[str, Any]] = {}
        self.reason: str | None = None
        self.scores: list[JSON] = []

    def whole(self, index: int) -> JSON:
        if self.calls:
            self.message["tool_calls"] = [self.calls[number] for number in sorted(self.calls)]
        scores: dict[str, JSON] = {"content": self.scores, "refusal": None}
        found: dict[str, JSON] = {"logprobs": scores} if self.scores else {}
        return {"index": index, "message": self.message, **found, "finish_reason": self.reason}


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


_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")

_DEMANDING: Final = frozenset(
    [
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "tool_choice",
        "parallel_tool_calls",
    ]
)

_ERROR_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def read_request(body: JSON, url: str = "") -> WireRequest:
    """Parse a request body; raises `BadRequest` if it is invalid. A message's text parts become one string."""
    body = body_object(body)
    options = body.get("stream_options")
    return WireRequest(
        model=member(body, "model", str, where=""),
        messages=tuple(
            _message(message, number)
            for number, message in enumerate(objects(body.get("messages"), where="messages"))
        ),
        tools=tuple(objects(body.get("tools") or [], where="tools")),
        temperature=number_or_none(body, "temperature"),
        demands=NO_DEMANDS if _DEMANDING.isdisjoint(body) else _demands(body),
        stream=body.get("stream") is True,
        stream_usage=isinstance(options, dict) and options.get("include_usage") is True,
        refused=(*refused_parameters("openai", body), *_without_stream(body)),
        logprobs=body.get("logprobs") is True or "logprobs",
    )


def _without_stream(body: Mapping[str, JSON]) -> Iterator[Refusal]:
    if body.get("stream_options") is not None and not body.get("stream"):
        why = "stream_options: allowed only if stream is true, as in the API"
        yield Refusal("stream_options", why)


def _message(message: dict[str, JSON], number: int) -> dict[str, JSON]:
    role, where = message.get("role"), f"messages[{number}]"
    if role not in _ROLES:
        role = member(message, "role", str, where=f"{where}.")
        raise BadRequest(f"{where}.role: expected one of {', '.join(_ROLES)}, got {role!r}")
    content = message.get("content")
    if isinstance(content, str):
        return message
    content = text_of(content, where=f"{where}.content")
    if content is None and role != "assistant":
        raise BadRequest(f"{where}.content: expected a string or a list of content parts, got nothing")
    return {**message, "content": content}


def _demands(body: Mapping[str, JSON]) -> Demands:
    named = "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
    calls, names = calls_demanded(body.get("tool_choice"))
    return Demands(
        stop=stops_of(body.get("stop"), where="stop"),
        max_tokens=limit_of(number_or_none(body, named), where=named),
        json_object=wants_json(body.get("response_format")),
        calls=calls,
        call_names=names,
        one_call=body.get("parallel_tool_calls") is False,
    )


def wants_json(wanted: JSON) -> bool:
    """Return whether `response_format`, or the `format` of another API, requests JSON."""
    return isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema")


def calls_demanded(choice: JSON) -> tuple[Literal["may", "must", "must not"], tuple[str, ...]]:
    """Return whether `tool_choice` allows, requires or forbids calls, and the names of the allowed functions.

    Both the Chat Completions and the Responses spelling are accepted.
    """
    if choice in ("none", "required"):
        return ("must not" if choice == "none" else "must"), ()
    if not isinstance(choice, dict):
        return "may", ()
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        listed = allowed.get("tools") if isinstance(allowed, dict) else None
        names = [name for tool in listed if (name := _named(tool))] if isinstance(listed, list) else []
        must = isinstance(allowed, dict) and allowed.get("mode") == "required"
        return ("must" if must else "may"), tuple(names)
    name = _named(choice)
    return ("must", (name,)) if name else ("may", ())


def _named(tool: JSON) -> str:
    """Return the function name in `{"name": ...}` or `{"function": {"name": ...}}`, or an empty string."""
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def reply_body(reply: WireReply) -> bytes:
    """Serialize a reply as a `chat.completion`; equal replies give equal bytes."""
    message: dict[str, JSON] = {"role": "assistant", "content": None if reply.refuses else reply.text}
    if reply.refuses:
        message["refusal"] = reply.text or ""
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.citations:
        message["annotations"] = url_citations(reply)
    if reply.calls:
        message["tool_calls"] = [openai_call(call.id, call.name, call.arguments) for call in reply.calls]
    scores: dict[str, JSON] = {"logprobs": logprobs_field(reply.scored)} if reply.tokens else {}
    choice: JSON = {"index": 0, "message": message, **scores, "finish_reason": _finish_reason(reply)}
    return compact(completion(reply, "chat.completion", [choice], usage_field(reply.usage))).encode()


def _finish_reason(reply: WireReply) -> str:
    return "stop" if reply.reason == "refusal" else reply.reason


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the `usage` field, or an empty dict for a reply without usage."""
    counted = usage or NO_USAGE
    counts: dict[str, JSON] = {"prompt_tokens": counted.prompt, "completion_tokens": counted.completion}
    details: dict[str, JSON] = {"prompt_tokens_details": {"cached_tokens": counted.cached}}
    return usage_member("usage", usage, counts, total="total_tokens", details=details)


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"error": {...}}` with OpenAI's error type for the status."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = code or ("rate_limit_exceeded" if status == 429 else None)
    return compact({"error": {"message": message, "type": kind, "param": parameter, "code": code}}).encode()


_READ: Final[dict[bytes, ParsedReply]] = {}
_MOST_READ: Final = 512
_LONGEST_READ: Final = 16_384
"""The maximum number of cached bodies, and the maximum size of each in bytes; repeated runs parse equal bodies."""

REASONING: Final = ("reasoning_details", "reasoning", "reasoning_content")
"""The keys in a reply's message that later requests must repeat, in STATEK's order."""


_COUNTS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens")
"""The `usage` keys for prompt, completion and cached tokens."""


def request_url(api_url: str, model: str) -> str:
    """Return `api_url` unchanged (behaviour 12)."""
    return api_url


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return a request's HTTP headers, including the API key."""
    return {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}


def request_body(request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return a request's JSON body, with keys in STATEK's order (behaviour 12)."""
    body: dict[str, JSON] = {
        "model": request.model,
        "messages": [dict(message) for message in request.messages],
    }
    if request.tools:
        body["tools"] = [dict(spec) for spec in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if options.max_tokens is not None:
        body["max_tokens"] = options.max_tokens
    return body


def read_reply(body: bytes) -> ParsedReply:
    """Parse the body of a successful response; raises the same errors as STATEK, with the same messages.

    A body that is not JSON raises `json.JSONDecodeError` or `UnicodeDecodeError`, a response without choices
    `RuntimeError("LLM API error: ...")`, an invalid tool call `InvalidFormat`, `"usage": null` `AttributeError`, and
    any other wrong shape `KeyError` or `TypeError`. If content or a token count has the wrong JSON type, the error is
    the one that STATEK raises shortly afterwards (for content, in every chat style except CONSOLE). A fractional token
    count is truncated.
    """
    if type(body) is not bytes or len(body) > _LONGEST_READ:
        return _read(body)
    reply = _READ.get(body)
    if reply is None:
        reply = _read(body)
        # Mutable values, such as the arguments of a call, are parsed again each time.
        if not reply.tool_calls and reply.reasoning is None:
            if len(_READ) >= _MOST_READ:
                _READ.clear()
            _READ[body] = reply
    return reply


def _read(body: bytes) -> ParsedReply:
    answer = json.loads(body)
    if "choices" not in answer or not answer["choices"]:
        reason = answer.get("error", {}).get("message", str(answer))
        raise RuntimeError(f"LLM API error: {reason}")
    message = answer["choices"][0]["message"]
    calls = message.get("tool_calls")
    requests = tuple(read_tool_call(call) for call in calls) if calls else ()
    content = message.get("content") or ""
    usage = (
        reported_usage(answer["usage"], *_COUNTS, details="prompt_tokens_details")
        if "usage" in answer
        else NO_USAGE
    )
    if not isinstance(content, str):
        raise TypeError(f"expected string or bytes-like object, got {type(content).__name__!r}")
    reasoning = {key: message[key] for key in REASONING if key in message}
    return ParsedReply(content, requests, usage, reasoning or None)
