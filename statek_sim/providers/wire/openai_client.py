"""OpenAI chat completions as STATEK's client speaks them: build a request, read a reply.

`read_reply` fails exactly as STATEK 1.2.5 - 1.4.2 fails (behaviour 5, 6.6 and 12): the error's text
becomes the job's error. A body of the wrong shape therefore fails with Python's own message, so the
`TypedDict`s below say what the wire shape should be and nothing checks it first.
"""

from __future__ import annotations

import json
from typing import Final, TypedDict

from statek_sim.providers.wire.reply import (
    NO_USAGE,
    ParsedReply,
    ReportedUsage,
    read_tool_call,
    reported_cost,
    reported_tokens,
)
from statek_sim.providers.wire.request import PLAIN, Asked, ClientOptions
from statek_sim.values import JSON

_READ: Final[dict[bytes, ParsedReply]] = {}
_MOST_READ: Final = 512
_LONGEST_READ: Final = 16_384
"""Bodies that are remembered, and the bytes of the longest of them: runs of one script get the same ones."""

REASONING: Final = ("reasoning_details", "reasoning", "reasoning_content")
"""Fields of a reply's message that the provider wants back with the turn, in the order STATEK keeps them."""


class _Details(TypedDict, total=False):
    cached_tokens: JSON


class _Usage(TypedDict, total=False):
    prompt_tokens: JSON
    completion_tokens: JSON
    prompt_tokens_details: _Details | None
    cost: JSON


def request_url(api_url: str, model: str) -> str:
    """Return `<P>_API_URL` as it is (behaviour 12)."""
    return api_url


def request_headers(api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
    """Return the headers of a request."""
    return {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}


def request_body(request: Asked, options: ClientOptions = PLAIN) -> dict[str, JSON]:
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

    Raises what STATEK raises, with its text: `json.JSONDecodeError` or `UnicodeDecodeError` for a body that
    is not JSON; `RuntimeError("LLM API error: ...")` without choices; `InvalidFormat` for a bad tool call;
    `AttributeError` for `"usage": null`; `KeyError` or `TypeError` for other wrong shapes. Content or token
    counts of a wrong JSON type fail here with the text that STATEK ends with a moment later (for content: its
    text in every style but CONSOLE); a fractional token count is cut.
    """
    if type(body) is not bytes or len(body) > _LONGEST_READ:
        return _read(body)
    reply = _READ.get(body)
    if reply is None:
        reply = _read(body)
        # What can be changed, as the arguments of a call can, is read anew each time.
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
    usage = _reported_usage(answer["usage"]) if "usage" in answer else NO_USAGE
    if not isinstance(content, str):
        raise TypeError(f"expected string or bytes-like object, got {type(content).__name__!r}")
    reasoning = {key: message[key] for key in REASONING if key in message}
    return ParsedReply(content, requests, usage, reasoning or None)


def _reported_usage(usage: _Usage) -> ReportedUsage:
    cost = usage.get("cost")
    details: _Details = usage.get("prompt_tokens_details") or {}
    return ReportedUsage(
        prompt=reported_tokens(usage.get("prompt_tokens", 0)),
        completion=reported_tokens(usage.get("completion_tokens", 0)),
        cached=reported_tokens(details.get("cached_tokens", 0)),
        cost=reported_cost(cost),
    )
