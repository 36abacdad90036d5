"""Anthropic Messages as a `WireFormat`.

The first half implements the provider, which parses requests and writes responses, streamed or not. The second half
implements STATEK's client (behaviour 12): it drops empty user messages and all system messages after the system prompt,
and merges consecutive tool results, and any user message directly after them, into one user message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.parameters import refused_parameters
from statek_sim.providers.wire.reply import (
    NO_USAGE,
    SIGNATURE,
    Citation,
    ParsedReply,
    ReportedUsage,
    Split,
    StopReason,
    WireReply,
    WireToolCall,
    compact,
    json_arguments,
    pieces_of,
    read_tool_call,
    reported_usage,
    sse_event,
    sse_events,
    usage_member,
)
from statek_sim.providers.wire.request import (
    NATIVE_ANTHROPIC,
    NO_DEMANDS,
    PLAIN,
    ClientOptions,
    Demands,
    FormatName,
    RequestContent,
    WireRequest,
    body_object,
    function_of,
    limit_of,
    member,
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

NAME: Final[FormatName] = "anthropic"


def reply_stream(reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
    """Yield a response's events.

    `message_start` contains the prompt tokens. `message_delta` repeats them and adds the completion tokens, because
    LangChain reads only `message_delta`.
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
    if reply.thinks or reply.thinking:
        yield from _thoughts(reply, split)
        index = 1
    for text, cited in text_blocks(reply):
        yield from _text_block(index, text, cited, split)
        index += 1
    for number, call in enumerate(reply.calls, index):
        yield from _call(number, call, split)
    yield _event("message_delta", {"delta": stop_fields(reply), **reported})
    yield _event("message_stop", {})


def _event(name: str, data: dict[str, JSON]) -> bytes:
    return sse_event(compact({"type": name, **data}), name=name)


def _thoughts(reply: WireReply, split: Split) -> Iterator[bytes]:
    deltas = [("thinking_delta", "thinking", piece) for piece in pieces_of(reply.thinking, split)]
    yield from _deltas(
        0, {**THINKING, "signature": ""}, [*deltas, ("signature_delta", "signature", SIGNATURE)]
    )


def _call(index: int, call: WireToolCall, split: Split) -> Iterator[bytes]:
    block: dict[str, JSON] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    yield from _block(index, block, "input_json_delta", "partial_json", pieces_of(call.arguments, split))


def _block(
    index: int, block: dict[str, JSON], delta: str, key: str, pieces: Sequence[str]
) -> Iterator[bytes]:
    yield from _deltas(index, block, [(delta, key, piece) for piece in pieces])


def _text_block(index: int, text: str, cited: Sequence[Citation], split: Split) -> Iterator[bytes]:
    block: dict[str, JSON] = {"type": "text", "text": "", **({"citations": []} if cited else {})}
    deltas: list[tuple[str, str, JSON]] = [("text_delta", "text", piece) for piece in split(text)]
    deltas += [("citations_delta", "citation", citation_of(one, text)) for one in cited]
    yield from _deltas(index, block, deltas)


def _deltas(index: int, block: dict[str, JSON], deltas: Sequence[tuple[str, str, JSON]]) -> Iterator[bytes]:
    """Yield a content block's events; `deltas` are tuples of (delta type, key, piece)."""
    yield _event("content_block_start", {"index": index, "content_block": block})
    for kind, key, piece in deltas:
        yield _event("content_block_delta", {"index": index, "delta": {"type": kind, key: piece}})
    yield _event("content_block_stop", {"index": index})


def _at_the_start(reported: dict[str, JSON]) -> dict[str, JSON]:
    usage = reported.get("usage")
    return {"usage": {**usage, "output_tokens": 0}} if isinstance(usage, dict) else reported


def join_stream(stream: bytes) -> bytes:
    """Assemble a stream's events into a `message`; raises `ValueError` for an event that is not JSON."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for data in sse_events(stream):
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
        blocks[index]["input"] = json_arguments(text)
    if message:
        message["content"] = [blocks[index] for index in sorted(blocks)]
    return compact(message).encode()


def _add(delta: dict[str, Any], block: dict[str, Any], inputs: dict[int, str], index: int) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case _:
            pass


STOP_REASONS: Final[Mapping[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
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
    """Parse a request body; raises `BadRequest` if it is invalid.

    `max_tokens` is required, unless `url` ends in `/count_tokens`.
    """
    body = body_object(body)
    counting = url.endswith("/count_tokens")
    system = text_of(body.get("system"), where="system")
    prompt: list[Message] = [{"role": "system", "content": system}] if system else []
    messages = [
        converted
        for number, message in enumerate(objects(body.get("messages"), where="messages"))
        for converted in _openai_messages(message, f"messages[{number}]")
    ]
    return WireRequest(
        model=member(body, "model", str, where=""),
        messages=(*prompt, *messages),
        tools=tuple(map(_tool, objects(body.get("tools") or [], where="tools"))),
        temperature=number_or_none(body, "temperature"),
        demands=NO_DEMANDS if counting else _demands(body),
        stream=body.get("stream") is True,
        stream_usage=True,
        refused=refused_parameters("anthropic_count" if counting else "anthropic", body),
        thinks=is_thinking(body),
        shows_thinking=_thinking(body) in ("enabled", "adaptive") or "thinking",
    )


THINKING: Final[Mapping[str, JSON]] = {"type": "thinking", "thinking": "", "signature": SIGNATURE}
"""The thinking block sent if no thinking is scripted: signed and empty, as from newer models."""


def is_thinking(body: Mapping[str, JSON]) -> bool:
    """Return whether a request enables thinking, so that every answer starts with a thinking block."""
    return _thinking(body) == "enabled"


def _thinking(body: Mapping[str, JSON]) -> JSON:
    thinking = body.get("thinking")
    return thinking.get("type") if isinstance(thinking, dict) else None


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


def _openai_messages(message: dict[str, JSON], where: str) -> Iterator[Message]:
    """Convert a message to the OpenAI format, in which each tool result is a separate message."""
    role = member(message, "role", str, where=f"{where}.")
    content = message.get("content")
    if role == "assistant":
        yield _turn(content, where)
    elif role != "user":
        raise BadRequest(f"{where}.role: expected 'user' or 'assistant', got {role!r}")
    elif isinstance(content, str):
        yield {"role": "user", "content": content}
    else:
        blocks = objects(content, where=f"{where}.content")
        yield from user_messages(blocks, partial(_result, where=where), where=where)


def _result(block: Mapping[str, JSON], where: str) -> Message | None:
    if block.get("type") != "tool_result":
        return None
    result = text_of(block.get("content"), where=f"{where}.content")
    return {"role": "tool", "content": result or "", "tool_call_id": block.get("tool_use_id", "")}


def _turn(content: JSON, where: str) -> Message:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    blocks = objects(content, where=f"{where}.content")
    texts: list[JSON] = [block for block in blocks if block.get("type") == "text"]
    calls = [_called(block) for block in blocks if block.get("type") == "tool_use"]
    turn: dict[str, JSON] = {
        "role": "assistant",
        "content": text_of(texts, where=where) if texts else None,
    }
    if calls:
        turn["tool_calls"] = calls
    if len(texts) + len(calls) != len(blocks):
        turn[NATIVE_ANTHROPIC] = content
    return turn


def _called(block: Mapping[str, JSON]) -> JSON:
    return openai_call(block.get("id", ""), block.get("name"), json.dumps(block.get("input", {})))


def _tool(tool: Mapping[str, JSON]) -> dict[str, JSON]:
    return openai_tool(tool.get("name"), tool.get("description", ""), tool.get("input_schema", {}))


def reply_body(reply: WireReply) -> bytes:
    """Serialize a reply as a `message`; equal replies give equal bytes."""
    body: dict[str, JSON] = {
        **head(reply),
        "content": _content(reply),
        **stop_fields(reply),
        **usage_field(reply.usage),
    }
    return compact(body).encode()


def stop_fields(reply: WireReply) -> dict[str, JSON]:
    """Return a reply's `stop_reason` and `stop_sequence` fields."""
    stopped = reply.stop_sequence
    return {
        "stop_reason": "stop_sequence" if stopped else STOP_REASONS[reply.reason],
        "stop_sequence": stopped,
    }


def head(reply: WireReply) -> dict[str, JSON]:
    """Return the fields shared by a response and the `message_start` event."""
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _content(reply: WireReply) -> list[JSON]:
    text: list[JSON] = [
        {
            "type": "text",
            "text": part,
            **({"citations": [citation_of(one, part) for one in cited]} if cited else {}),
        }
        for part, cited in text_blocks(reply)
    ]
    shown = reply.thinks or reply.thinking
    thought: list[JSON] = [{**THINKING, "thinking": reply.thinking}] if shown else []
    return [*thought, *text, *map(tool_use, reply.calls)]


def text_blocks(reply: WireReply) -> list[tuple[str, list[Citation]]]:
    """Return a reply's text as blocks with citations; each cited span is a separate block."""
    text, blocks, at = reply.text or "", [], 0
    for (start, end), group in groupby(reply.cited, lambda one: one[:2]):
        blocks += [(text[at:start], []), (text[start:end], [one for *_, one in group])]
        at = end
    return [(part, cited) for part, cited in [*blocks, (text[at:], [])] if part]


def citation_of(cited: Citation, span: str) -> dict[str, JSON]:
    """Return a citation for the text block `span`.

    Source: `CitationsWebSearchResultLocation` in the `anthropic` SDK.
    """
    return {
        "type": "web_search_result_location",
        "url": cited.url,
        "title": cited.title,
        "cited_text": cited.quote or span,
        "encrypted_index": SIGNATURE,
    }


def tool_use(call: WireToolCall) -> JSON:
    """Return the `tool_use` block for a call; arguments that are not valid JSON are kept as a string."""
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": json_arguments(call.arguments)}


def usage_field(usage: ReportedUsage | None) -> dict[str, JSON]:
    """Return the `usage` field, or an empty dict for a reply without usage."""
    counted = usage or NO_USAGE
    counts: dict[str, JSON] = {
        "input_tokens": counted.prompt,
        "cache_read_input_tokens": counted.cached,
        "output_tokens": counted.completion,
    }
    return usage_member("usage", usage, counts)


def error_body(status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> bytes:
    """Return `{"type": "error", ...}` with Anthropic's error type for the status."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return compact({"type": "error", "error": {"type": kind, "message": message}}).encode()


URL: Final = "https://api.anthropic.com/v1/messages"
"""The URL to which STATEK sends requests; STATEK ignores `<P>_API_URL`."""

VERSION: Final = "2023-06-01"
CACHING: Final = "prompt-caching-2024-07-31"
MAX_TOKENS: Final = 4096
_EPHEMERAL: Final[dict[str, JSON]] = {"type": "ephemeral"}


_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens")
"""The `usage` keys for prompt, completion and cached tokens."""


def request_url(api_url: str, model: str) -> str:  # STATEK does not use them
    """Return the URL of Anthropic's API, which STATEK uses for every request."""
    return URL


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return a request's HTTP headers, including the API key."""
    headers = {"x-api-key": api_key, "anthropic-version": VERSION, "Content-Type": "application/json"}
    if options.prompt_caching:
        headers["anthropic-beta"] = CACHING
    return headers


def request_body(request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return a request's JSON body, with keys in STATEK's order."""
    prompt, messages = split_prompt(request.messages)
    body: dict[str, JSON] = {
        "model": request.model,
        "messages": _messages(messages, caching=options.prompt_caching),
        "max_tokens": MAX_TOKENS if options.max_tokens is None else options.max_tokens,
    }
    if request.tools:
        body["tools"] = [_declared(spec) for spec in request.tools]
    if prompt:
        body["system"] = [_text(prompt, cached=True)] if options.prompt_caching else prompt
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _messages(messages: Sequence[Message], *, caching: bool) -> list[JSON]:
    texts = [index for index, message in enumerate(messages) if _has_text(message)]
    cached = texts[-1] if caching and texts else -1
    written: list[JSON] = []
    results: list[JSON] | None = None
    for index, message in enumerate(messages):
        content = message.get("content")
        match message.get("role"):
            case "tool":
                if results is None:
                    results = []
                    written.append({"role": "user", "content": results})
                results.append(_tool_result(message))
            case "user":
                if content and results is not None:
                    results.append({"type": "text", "text": content})
                elif content:
                    written.append({"role": "user", "content": content})
                results = None
            case _:
                written.extend(_assistant(message, cached=index == cached))
                results = None
    return written


def _has_text(message: Message) -> bool:
    return message.get("role") == "assistant" and bool(message.get("content"))


def _tool_result(message: Message) -> JSON:
    return {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id", ""),
        "content": message.get("content") or "",
    }


def _assistant(message: Message, *, cached: bool) -> list[JSON]:
    """Return a list with an assistant message in Anthropic's format; empty for an empty message."""
    native = message.get(NATIVE_ANTHROPIC)
    content, calls = message.get("content"), message.get("tool_calls")
    if native is not None:
        return [{"role": "assistant", "content": native}]
    if isinstance(calls, list) and calls:
        blocks = [_text(content, cached=cached)] if content else []
        return [{"role": "assistant", "content": [*blocks, *map(_tool_use, calls)]}]
    if not content:
        return []
    return [{"role": "assistant", "content": [_text(content, cached=True)] if cached else content}]


def _text(text: JSON, *, cached: bool) -> JSON:
    block: dict[str, JSON] = {"type": "text", "text": text}
    return {**block, "cache_control": dict(_EPHEMERAL)} if cached else block


def _tool_use(call: JSON) -> JSON:
    function = function_of(call)
    return {
        "type": "tool_use",
        "id": call.get("id", "") if isinstance(call, dict) else "",
        "name": function["name"],
        "input": json.loads(str(function["arguments"])),
    }


def _declared(spec: ToolSpec) -> JSON:
    function = function_of(dict(spec))
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def read_reply(body: bytes) -> ParsedReply:
    """Parse the body of a successful response; raises the same errors as STATEK, with the same messages.

    The errors are those of `openai.read_reply`, except that a response without content, or with only an error, is an
    empty reply. Blocks other than text, calls and thinking are skipped.
    """
    answer = json.loads(body)
    blocks = answer.get("content", [])
    text, calls, thought = "", [], False
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            text += block.get("text", "")
        elif kind == "tool_use":
            calls.append(block)
        thought = thought or kind in ("thinking", "redacted_thinking")
    requests = tuple(read_tool_call(call) for call in calls)
    usage = reported_usage(answer["usage"], *_COUNTS) if "usage" in answer else NO_USAGE
    return ParsedReply(text, requests, usage, {NATIVE_ANTHROPIC: blocks} if thought else None)
