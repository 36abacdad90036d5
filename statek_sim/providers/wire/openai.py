"""OpenAI chat completions, a `WireFormat`: a provider reads requests and writes answers, whole or streamed.

The second half is STATEK's client: it builds requests and reads replies. `read_reply` fails exactly as STATEK 1.2.5 -
1.4.2 does (behaviour 5, 6.6 and 12), with Python's own message for a body of the wrong shape: the error's text becomes
the job's error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
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
    quoted,
    read_tool_call,
    reported_usage,
    sse_event,
    sse_events,
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
    start = f'{head}{{"index":0,"delta":'
    for delta, token in _deltas(reply, split):
        scores = f',"logprobs":{compact(logprobs_field([token]))}' if token else ""
        yield sse_event(f'{start}{compact(delta)}{scores},"finish_reason":null}}{tail}')
    yield sse_event(f'{start}{{}},"finish_reason":{quoted(_finish_reason(reply))}}}{tail}')
    if reported:
        yield sse_event(f'{head}],"usage":{usage_json(reply.usage)}}}')
    yield sse_event(DONE)


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
    """Return the citations of a text, from the start to the end (exclusive) of their spans.

    Source: `ChatCompletionMessage.annotations` of the SDK `openai`.
    """
    return [
        {
            "type": "url_citation",
            "url_citation": {"start_index": start, "end_index": end, "title": cited.title, "url": cited.url},
        }
        for start, end, cited in reply.cited
    ]


def logprobs_field(tokens: Sequence[ScoredToken]) -> dict[str, JSON]:
    """Return `logprobs` of a choice. Source: `ChatCompletionTokenLogprob` of the SDK `openai`."""
    return {"content": [logprob_entry(token) for token in tokens], "refusal": None}


def logprob_entry(token: ScoredToken) -> dict[str, JSON]:
    """Return a token with its log probability, and those of the others in its place."""
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
    """Return the `chat.completion` combined from the chunks.

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
    """One choice of a streamed answer so far."""

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
    """Read a request as the API does; text parts of a message's content are joined to one text."""
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
        why = "stream_options: only allowed when stream is true, as in the API"
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
    """Return the requirements of `tool_choice` on calls, and the functions it names; in both APIs' spellings."""
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
    """Return the function name in a choice: `{"name"}` or `{"function": {"name"}}`."""
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def reply_body(reply: WireReply) -> bytes:
    """Return a `chat.completion`; its bytes depend on `reply` alone."""
    usage = reply.usage
    ending = "}" if usage is not None and not usage.present else f',"usage":{usage_json(usage)}}}'
    text = (
        f'{{"id":{quoted(reply_id(reply))},"object":"chat.completion","created":{reply.created},'
        f'"model":{quoted(reply.model)},"choices":[{_choice_json(reply)}]{ending}'
    )
    return text.encode()


def reply_id(reply: WireReply) -> str:
    """Return the id of an answer and of all its chunks."""
    return f"chatcmpl-{reply.id}"


def _choice_json(reply: WireReply) -> str:
    spoken = "null" if reply.text is None or reply.refuses else quoted(reply.text)
    if reply.refuses:
        spoken += f',"refusal":{quoted(reply.text or "")}'
    if reply.thinking:
        spoken += f',"reasoning_content":{quoted(reply.thinking)}'
    if reply.citations:
        spoken += f',"annotations":{compact(url_citations(reply))}'
    tools = f',"tool_calls":[{",".join(map(_call_json, reply.calls))}]' if reply.calls else ""
    message = f'{{"role":"assistant","content":{spoken}{tools}}}'
    scores = f',"logprobs":{compact(logprobs_field(reply.scored))}' if reply.tokens else ""
    return f'{{"index":0,"message":{message}{scores},"finish_reason":{quoted(_finish_reason(reply))}}}'


def _finish_reason(reply: WireReply) -> str:
    return "stop" if reply.reason == "refusal" else reply.reason


def _call_json(call: WireToolCall) -> str:
    return (
        f'{{"id":{quoted(call.id)},"type":"function","function":'
        f'{{"name":{quoted(call.name)},"arguments":{quoted(call.arguments)}}}}}'
    )


@lru_cache(maxsize=4096)
def usage_json(usage: ReportedUsage | None) -> str:
    """Return the value of `usage`."""
    if usage is None:
        return "null"
    prompt, completion, cached = (_count(count) for count in (usage.prompt, usage.completion, usage.cached))
    fields: dict[str, JSON] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if prompt is not None and completion is not None:
        fields["total_tokens"] = prompt + completion
    fields["prompt_tokens_details"] = {"cached_tokens": cached}
    if usage.cost is not None:
        fields["cost"] = float(usage.cost)
    return json.dumps(fields, separators=(",", ":"))


def _count(count: int | None) -> int | None:
    """Return a count that tells True from 1, which would be the same cache key."""
    return None if count is None else int(count)


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"error": {...}}` with OpenAI's error type for the status."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = code or ("rate_limit_exceeded" if status == 429 else None)
    return compact({"error": {"message": message, "type": kind, "param": parameter, "code": code}}).encode()


_READ: Final[dict[bytes, ParsedReply]] = {}
_MOST_READ: Final = 512
_LONGEST_READ: Final = 16_384
"""Maximum cached bodies, and the maximum bytes of one. Repeated runs of a script get the same bodies."""

REASONING: Final = ("reasoning_details", "reasoning", "reasoning_content")
"""Fields of a reply's message that must be sent back with the turn, in STATEK's order."""


_COUNTS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens")
"""The names of the counts in a reply's usage: prompt, completion, cached."""


def request_url(api_url: str, model: str) -> str:
    """Return `<P>_API_URL` unchanged (behaviour 12)."""
    return api_url


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return the headers of a request."""
    return {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}


def request_body(request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return the body of a request, keys in STATEK's order (behaviour 12)."""
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
    """Read the body of a successful answer.

    Raises the same errors as STATEK, with its texts: `json.JSONDecodeError` or `UnicodeDecodeError` for a body that is
    not JSON; `RuntimeError("LLM API error: ...")` without choices; `InvalidFormat` for a bad tool call; raises
    `AttributeError` for `"usage": null`; `KeyError` or `TypeError` for other wrong shapes. Content or token counts of a
    wrong JSON type fail here with the text of the error that STATEK raises a moment later (for content: its text in
    every style but CONSOLE); a fractional token count is truncated.
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
