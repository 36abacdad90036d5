"""Anthropic Messages as STATEK's client speaks them: build a request, read a reply (behaviour 12).

As in STATEK: only the system prompt is sent, other system messages are dropped; an empty user message is dropped;
tool results in a row are one user message, and a user message right behind them goes into it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypedDict

from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    read_tool_call,
    reported_cost,
    reported_tokens,
)
from statek_sim.providers.wire.request import NATIVE_ANTHROPIC, PLAIN, Asked, ClientOptions, split_prompt
from statek_sim.values import JSON, Message, ToolSpec

URL: Final = "https://api.anthropic.com/v1/messages"
"""Where STATEK sends requests, whatever `<P>_API_URL` says."""

VERSION: Final = "2023-06-01"
CACHING: Final = "prompt-caching-2024-07-31"
MAX_TOKENS: Final = 4096
_EPHEMERAL: Final[dict[str, JSON]] = {"type": "ephemeral"}


class _Usage(TypedDict, total=False):
    input_tokens: JSON
    output_tokens: JSON
    cache_read_input_tokens: JSON
    cost: JSON


def request_url(api_url: str, model: str) -> str:  # STATEK does not look at them
    """Return Anthropic's own address: STATEK has no other."""
    return URL


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return the headers of a request."""
    headers = {"x-api-key": api_key, "anthropic-version": VERSION, "Content-Type": "application/json"}
    if options.prompt_caching:
        headers["anthropic-beta"] = CACHING
    return headers


def request_body(request: Asked, options: ClientOptions = PLAIN) -> dict[str, JSON]:
    """Return the body of a request, keys in STATEK's order."""
    prompt, messages = split_prompt(request.messages)
    body: dict[str, JSON] = {
        "model": request.model,
        "messages": _messages(messages, caching=options.prompt_caching),
        "max_tokens": MAX_TOKENS if options.max_tokens is None else options.max_tokens,
    }
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if prompt:
        body["system"] = [_text(prompt, cached=True)] if options.prompt_caching else prompt
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _messages(messages: Sequence[Message], *, caching: bool) -> list[JSON]:
    spoken = [index for index, message in enumerate(messages) if _is_spoken(message)]
    cached = spoken[-1] if caching and spoken else -1
    written: list[JSON] = []
    results: list[JSON] | None = None
    for index, message in enumerate(messages):
        content = message.get("content")
        match message.get("role"):
            case "tool":
                if results is None:
                    results = []
                    written.append({"role": "user", "content": results})
                results.append(_result(message))
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


def _is_spoken(message: Message) -> bool:
    return message.get("role") == "assistant" and bool(message.get("content"))


def _result(message: Message) -> JSON:
    return {
        "type": "tool_result",
        "tool_use_id": message.get("tool_call_id", ""),
        "content": message.get("content") or "",
    }


def _assistant(message: Message, *, cached: bool) -> list[JSON]:
    """Return the message of one turn; none for a turn that said nothing."""
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
    assert isinstance(call, dict), "messages are in OpenAI's shape"
    function = call["function"]
    assert isinstance(function, dict), "messages are in OpenAI's shape"
    return {
        "type": "tool_use",
        "id": call.get("id", ""),
        "name": function["name"],
        "input": json.loads(str(function["arguments"])),
    }


def _tool(spec: ToolSpec) -> JSON:
    function = spec["function"]
    assert isinstance(function, dict), "tools are in OpenAI's shape"
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def read_reply(body: bytes) -> ParsedReply:
    """Read the body of a successful answer.

    Raises what STATEK raises, with its text: as OpenAI's, but no content at all is an empty reply, and so is a
    body that only tells an error. Blocks of other types are passed over.
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
    usage = _reported_usage(answer["usage"]) if "usage" in answer else NO_USAGE
    return ParsedReply(text, requests, usage, {NATIVE_ANTHROPIC: blocks} if thought else None)


def _reported_usage(usage: _Usage) -> ReportedUsage:
    cost = usage.get("cost")
    return ReportedUsage(
        prompt=reported_tokens(usage.get("input_tokens", 0)),
        completion=reported_tokens(usage.get("output_tokens", 0)),
        cached=reported_tokens(usage.get("cache_read_input_tokens", 0)),
        cost=reported_cost(cost),
    )
