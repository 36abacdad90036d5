"""OpenAI's Responses API as a `WireFormat`.

The first half implements the provider, which parses requests and writes responses, streamed or not. The second half
implements a client, used to read recordings; STATEK does not use this API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.openai import calls_demanded, logprob_entry, wants_json
from statek_sim.providers.wire.openai import error_body as error_body
from statek_sim.providers.wire.openai import request_headers as request_headers
from statek_sim.providers.wire.parameters import refused_parameters
from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    ScoredToken,
    Split,
    ToolCallRequest,
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
    PLAIN,
    ClientOptions,
    Demands,
    FormatName,
    RequestContent,
    WireRequest,
    body_object,
    calls_of,
    limit_of,
    member,
    number_or_none,
    objects,
    openai_call,
    text_of,
)
from statek_sim.values import JSON, Message, ToolSpec

NAME: Final[FormatName] = "responses"

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a response's events; the last event contains the complete response and the usage."""
    for number, (kind, data) in enumerate(_events(reply, split, usage=usage)):
        yield sse_event(compact({"type": kind, **data, "sequence_number": number}), name=kind)


def _events(reply: WireReply, split: Split, *, usage: bool) -> Iterator[tuple[str, dict[str, JSON]]]:
    begun = response(reply, [], "in_progress", usage=False, at_end=False)
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    items = output(reply)
    first_call = len(items) - len(reply.calls)
    for index, item in enumerate(items):
        place: dict[str, JSON] = {"output_index": index}
        if index == 0 and reply.thinking:
            yield "response.output_item.added", {**place, "item": reasoning(reply, "")}
            yield from _summary(reply, split, place)
        elif index < first_call:
            yield "response.output_item.added", {**place, "item": message(reply, [], "in_progress")}
            yield from _text(reply, split, place)
        else:
            number = index - first_call
            added = call_item(reply, number, "", "in_progress")
            yield "response.output_item.added", {**place, "item": added}
            yield from _arguments(reply, number, split, place)
        yield "response.output_item.done", {**place, "item": item}
    state = status(reply)
    yield f"response.{state}", {"response": response(reply, items, state, usage=usage)}


def _text(reply: WireReply, split: Split, place: dict[str, JSON]) -> Iterator[tuple[str, dict[str, JSON]]]:
    text = reply.text or ""
    where: dict[str, JSON] = {"item_id": f"msg_{reply.id}", **place, "content_index": 0}
    kind, key = ("refusal", "refusal") if reply.refuses else ("output_text", "text")
    yield "response.content_part.added", {**where, "part": text_part("", refuses=reply.refuses)}
    for piece, token in reply.pieces(split):
        scores = [] if token is None else [token]
        yield f"response.{kind}.delta", {**where, "delta": piece, **_scores(reply, scores)}
    for number, one in enumerate(url_citations(reply)):
        added: dict[str, JSON] = {"annotation_index": number, "annotation": one}
        yield "response.output_text.annotation.added", {**where, **added}
    yield f"response.{kind}.done", {**where, key: text, **_scores(reply, reply.scored)}
    yield "response.content_part.done", {**where, "part": spoken_part(reply)}


def _scores(reply: WireReply, tokens: Sequence[ScoredToken]) -> dict[str, JSON]:
    return {} if reply.refuses else {"logprobs": [logprob_entry(token) for token in tokens]}


def _summary(reply: WireReply, split: Split, place: dict[str, JSON]) -> Iterator[tuple[str, dict[str, JSON]]]:
    where: dict[str, JSON] = {"item_id": f"rs_{reply.id}", **place, "summary_index": 0}
    yield "response.reasoning_summary_part.added", {**where, "part": summary_part("")}
    for piece in split(reply.thinking):
        yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
    yield "response.reasoning_summary_text.done", {**where, "text": reply.thinking}
    yield "response.reasoning_summary_part.done", {**where, "part": summary_part(reply.thinking)}


def _arguments(
    reply: WireReply, number: int, split: Split, place: dict[str, JSON]
) -> Iterator[tuple[str, dict[str, JSON]]]:
    call = reply.calls[number]
    where: dict[str, JSON] = {"item_id": f"fc_{reply.id}_{number + 1}", **place}
    for piece in pieces_of(call.arguments, split):
        yield "response.function_call_arguments.delta", {**where, "delta": piece}
    yield (
        "response.function_call_arguments.done",
        {**where, "name": call.name, "arguments": call.arguments},
    )


def join_stream(stream: bytes) -> bytes:
    """Return the last event's `response`; for a truncated stream, the part that was received.

    Raises `ValueError` for an event that is not JSON.
    """
    answer: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    for data in sse_events(stream):
        event = json.loads(data)
        kind, index = event.get("type"), event.get("output_index", 0)
        if kind in _ENDS:
            return compact(event["response"]).encode()
        match kind:
            case "response.created":
                answer = event["response"]
            case "response.output_item.added" | "response.output_item.done":
                items[index] = event["item"]
            case "response.output_text.delta":
                _grow(items[index], event["delta"])
            case "response.function_call_arguments.delta":
                items[index]["arguments"] += event["delta"]
            case _:
                pass
    return compact({**answer, "output": [items[index] for index in sorted(items)]} if answer else {}).encode()


def _grow(item: dict[str, Any], piece: str) -> None:
    """Append a piece to a message item's text."""
    if not item["content"]:
        item["content"] = [text_part("")]
    item["content"][-1]["text"] += piece


LOGPROBS: Final = "message.output_text.logprobs"
"""The value of `include` that requests log probabilities."""

_ROLES: Final = ("system", "developer", "user", "assistant")
_ECHOED: Final[Mapping[str, JSON]] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Request fields that a response repeats, and their default values."""

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


def read_request(body: JSON, url: str = "") -> WireRequest:
    """Parse a request body; raises `BadRequest` if it is invalid.

    The instructions become a system message, and consecutive items from the model become one assistant message.
    """
    body = body_object(body)
    counting = url.endswith("/input_tokens")
    instructions, previous = body.get("instructions"), body.get("previous_response_id")
    prompt: list[Message] = [{"role": "system", "content": instructions}] if instructions is not None else []
    return WireRequest(
        model=member(body, "model", str, where=""),
        messages=(*prompt, *_messages(body.get("input"), optional=previous is not None)),
        tools=tuple(_tool(tool) for tool in objects(body.get("tools") or [], where="tools")),
        temperature=number_or_none(body, "temperature"),
        demands=_demands(body),
        stream=not counting and body.get("stream") is True,
        stream_usage=True,
        refused=refused_parameters("responses", body),
        echo={key: body[key] for key in _ECHOED if body.get(key) is not None},
        shows_thinking=_shows_thinking(body) or "reasoning.summary",
        logprobs=_wants_logprobs(body.get("include")) or f"include=[{LOGPROBS!r}]",
        previous=None if previous is None else member(body, "previous_response_id", str, where=""),
    )


def _wants_logprobs(included: JSON) -> bool:
    return isinstance(included, list) and LOGPROBS in included


def _shows_thinking(body: Mapping[str, JSON]) -> bool:
    wanted = body.get("reasoning")
    return isinstance(wanted, dict) and wanted.get("summary") is not None


def _demands(body: Mapping[str, JSON]) -> Demands:
    calls, names = calls_demanded(body.get("tool_choice"))
    text = body.get("text")
    return Demands(
        max_tokens=limit_of(number_or_none(body, "max_output_tokens"), where="max_output_tokens"),
        json_object=isinstance(text, dict) and wants_json(text.get("format")),
        calls=calls,
        call_names=names,
        one_call=body.get("parallel_tool_calls") is False,
    )


def _messages(given: JSON, *, optional: bool) -> list[Message]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if given is None and optional:
        return []
    messages: list[Message] = []
    turn: dict[str, JSON] | None = None
    for number, item in enumerate(objects(given, where="input")):
        where = f"input[{number}]"
        found = _assistant_message(item, turn, where) if _of_model(item) else None
        if found is None:
            messages.append(_other_message(item, where))
        elif found is not turn:
            messages.append(found)
        turn = found
    return messages


def _of_model(item: Mapping[str, JSON]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


def _assistant_message(item: Mapping[str, JSON], turn: dict[str, JSON] | None, where: str) -> dict[str, JSON]:
    """Return the assistant message that a model item belongs to: `turn`, or a new message.

    Text starts a new message unless `turn` is empty; calls and reasoning continue `turn`.
    """
    if item.get("type") == "reasoning":
        return {"role": "assistant", "content": None} if turn is None else turn
    if item.get("type") == "function_call":
        turn = {"role": "assistant", "content": None} if turn is None else turn
        calls = turn.setdefault("tool_calls", [])
        if isinstance(calls, list):
            calls.append(_call(item, where))
        return turn
    content = text_of(item.get("content"), where=f"{where}.content")
    if turn is not None and turn["content"] is None and "tool_calls" not in turn:
        turn["content"] = content
        return turn
    return {"role": "assistant", "content": content}


def _call(item: Mapping[str, JSON], where: str) -> JSON:
    return openai_call(
        *(member(item, key, str, where=f"{where}.") for key in ("call_id", "name", "arguments"))
    )


def _other_message(item: Mapping[str, JSON], where: str) -> Message:
    """Return the message for an item that does not come from the model: a user or system message, or a tool result."""
    kind, role = item.get("type", "message"), item.get("role")
    if kind == "function_call_output":
        output = text_of(item.get("output"), where=f"{where}.output")
        named = member(item, "call_id", str, where=f"{where}.")
        return {"role": "tool", "content": output or "", "tool_call_id": named}
    if kind != "message":
        raise BadRequest(
            f"{where}.type: expected message, reasoning, function_call or function_call_output, got {kind!r}; "
            "this server does not store items or run tools",
            parameter="input",
        )
    if role not in _ROLES:
        raise BadRequest(
            f"{where}.role: expected one of {', '.join(_ROLES)}, got {role!r}", parameter="input"
        )
    content = text_of(item.get("content"), where=f"{where}.content")
    if content is None:
        raise BadRequest(f"{where}.content: expected a string or a list of content parts, got nothing")
    return {"role": role, "content": content}


def _tool(tool: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a function tool in the Chat Completions format; other tools are returned unchanged."""
    if tool.get("type") != "function":
        return dict(tool)
    return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}


def reply_body(reply: WireReply) -> bytes:
    """Serialize a reply as a `response`; equal replies give equal bytes."""
    return compact(response(reply, output(reply), status(reply), usage=True)).encode()


def response(
    reply: WireReply, items: list[JSON], state: str, *, usage: bool, at_end: bool = True
) -> dict[str, JSON]:
    """Return the `response` object, sent by itself or in a stream's first and last events."""
    reason = _INCOMPLETE.get(reply.reason) if at_end else None
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.created,
        "status": state,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": reply.model,
        "output": items,
        **_ECHOED,
        **(reply.echo or {}),
        **(usage_field(reply.usage) if usage else {}),
    }


def status(reply: WireReply) -> str:
    """Return a response's status: `completed` or `incomplete`."""
    return "incomplete" if reply.reason in _INCOMPLETE else "completed"


def output(reply: WireReply) -> list[JSON]:
    """Return a response's output items: visible reasoning, a message, then each call."""
    text = reply.text
    thought: list[JSON] = [reasoning(reply, reply.thinking)] if reply.thinking else []
    parts = [] if text is None else [spoken_part(reply)]
    messages: list[JSON] = [message(reply, parts, status(reply))] if parts else []
    return [*thought, *messages, *(call_item(reply, number) for number in range(len(reply.calls)))]


def message(reply: WireReply, parts: list[JSON], state: str) -> JSON:
    """Return a message item with these content parts; `state` is its status."""
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "status": state,
        "role": "assistant",
        "content": parts,
    }


def reasoning(reply: WireReply, thought: str) -> JSON:
    """Return a reasoning item whose summary is `thought`."""
    return {
        "id": f"rs_{reply.id}",
        "type": "reasoning",
        "summary": [summary_part(thought)] if thought else [],
    }


def summary_part(text: str) -> JSON:
    """Return one part of a reasoning summary."""
    return {"type": "summary_text", "text": text}


def text_part(text: str, *, refuses: bool = False) -> JSON:
    """Return a message's content part, with text or a refusal."""
    if refuses:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def spoken_part(reply: WireReply) -> JSON:
    """Return the content part for a reply's text, with citations and log probabilities, or for its refusal.

    Source: `ResponseOutputText` in the `openai` SDK.
    """
    part = text_part(reply.text or "", refuses=reply.refuses)
    if isinstance(part, dict) and not reply.refuses:
        part |= {"annotations": url_citations(reply), **_scores(reply, reply.scored)}
    return part


def url_citations(reply: WireReply) -> list[JSON]:
    """Return a text's `annotations`; `end_index` is exclusive."""
    return [
        {
            "type": "url_citation",
            "start_index": start,
            "end_index": end,
            "title": cited.title,
            "url": cited.url,
        }
        for start, end, cited in reply.cited
    ]


def call_item(reply: WireReply, number: int, arguments: str | None = None, state: str = "completed") -> JSON:
    """Return the item for the call with this zero-based number; while streaming, `arguments` replaces its arguments."""
    call: WireToolCall = reply.calls[number]
    return {
        "id": f"fc_{reply.id}_{number + 1}",
        "type": "function_call",
        "status": state,
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments if arguments is None else arguments,
    }


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the `usage` field, or an empty dict for a reply without usage."""
    counted = usage or NO_USAGE
    counts: dict[str, JSON] = {
        "input_tokens": counted.prompt,
        "input_tokens_details": {"cached_tokens": counted.cached, "cache_write_tokens": 0},
        "output_tokens": counted.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return usage_member("usage", usage, counts, total="total_tokens")


def request_url(api_url: str, model: str) -> str:
    """Return the API's URL; `api_url` may also be the Chat Completions URL."""
    base = api_url.removesuffix("/chat/completions").removesuffix("/responses")
    return f"{base}/responses"


def request_body(request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return a request's JSON body, with an initial system message as instructions and other messages as items."""
    prompt, rest = _instructions(list(request.messages))
    body: dict[str, JSON] = {
        "model": request.model,
        "input": [item for message in rest for item in _items(message)],
    }
    if prompt is not None:
        body["instructions"] = prompt
    if request.tools:
        body["tools"] = [_declared(spec) for spec in request.tools]
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
    for call_id, name, arguments in calls_of(message):
        yield {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def _declared(spec: ToolSpec) -> JSON:
    function = spec.get("function")
    return {"type": "function", **function} if isinstance(function, dict) else dict(spec)


def read_reply(body: bytes) -> ParsedReply:
    """Parse the body of a successful response.

    Raises `ValueError` for a body that is not JSON, `RuntimeError` for a response without output, `InvalidFormat` for
    an invalid call, and `AttributeError`, `TypeError` or `LookupError` for any other malformed body.
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
                pass  # reasoning, and items of the provider's own tools
    usage = NO_USAGE
    if "usage" in answer:
        counts = "input_tokens", "output_tokens", "cached_tokens"
        usage = reported_usage(answer["usage"], *counts, details="input_tokens_details")
    return ParsedReply("".join(texts), tuple(calls), usage)
