"""The OpenAI chat-completions wire format: read a reply body as STATEK does, and build one.

`parse_reply` fails exactly as STATEK 1.2.5 - 1.4.2 fails (behaviour 5, 6.6 and 12): the error's text
becomes the job's error. A body of the wrong shape therefore fails with Python's own message, so the
`TypedDict`s below say what the wire shape should be and nothing checks it first. Built bodies are compact
UTF-8 JSON that depends on the arguments alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypedDict

from statek_sim.clock import EPOCH
from statek_sim.errors import InvalidFormat
from statek_sim.values import JSON

DEFAULT_URL: Final = "https://llm.invalid/v1/chat/completions"
"""The endpoint that error texts name; `.invalid` never resolves (RFC 6761)."""

_EPOCH_SECONDS: Final = int(EPOCH.timestamp())


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One tool call that a reply asks for.

    `id` is a string unless the provider misbehaves: STATEK hands back whatever came, and `""` when nothing
    did.
    """

    id: JSON
    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """What the provider says a call cost: tokens, and money in the provider's own currency.

    `present` is False when the body has no `usage` at all; the token counts are then 0, as in STATEK. A token
    count that is None was `null` in the body: STATEK fails with a `TypeError` when it adds it to a total,
    after it counted the bytes.
    """

    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0
    cost: float | None = None
    present: bool = True


NO_USAGE: Final = ReportedUsage(present=False)
"""A reply without a `usage` key."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply body says. `text` is empty when the content is missing or null."""

    text: str
    tool_calls: tuple[ToolCallRequest, ...]
    usage: ReportedUsage


@dataclass(frozen=True, slots=True)
class WireToolCall:
    """One tool call as it goes into a body; `arguments` is the raw string, valid JSON or not."""

    id: str
    name: str
    arguments: str


class _Function(TypedDict, total=False):
    name: JSON
    arguments: str


class _Call(TypedDict, total=False):
    id: JSON
    type: JSON
    function: _Function
    name: JSON
    input: JSON


class _Details(TypedDict, total=False):
    cached_tokens: JSON


class _Usage(TypedDict, total=False):
    prompt_tokens: JSON
    completion_tokens: JSON
    prompt_tokens_details: _Details | None
    cost: JSON


def parse_reply(body: bytes) -> ParsedReply:
    """Read the body of a successful answer.

    Raises what STATEK raises, with its text: `json.JSONDecodeError` or `UnicodeDecodeError` for a body that
    is not JSON; `RuntimeError("LLM API error: ...")` without choices; `InvalidFormat` for a bad tool call;
    `AttributeError` for `"usage": null`; `KeyError` or `TypeError` for other wrong shapes. Content or token
    counts of a wrong JSON type fail here with the text that STATEK ends with a moment later (for content: its
    text in every style but CONSOLE); a fractional token count is cut.
    """
    answer = json.loads(body)
    if "choices" not in answer or not answer["choices"]:
        reason = answer.get("error", {}).get("message", str(answer))
        raise RuntimeError(f"LLM API error: {reason}")
    message = answer["choices"][0]["message"]
    calls = message.get("tool_calls")
    requests = tuple(_tool_call(call) for call in calls) if calls else ()
    content = message.get("content") or ""
    usage = _reported_usage(answer["usage"]) if "usage" in answer else NO_USAGE
    if not isinstance(content, str):
        raise TypeError(f"expected string or bytes-like object, got {type(content).__name__!r}")
    return ParsedReply(content, requests, usage)


def _tool_call(call: _Call) -> ToolCallRequest:
    """Read one tool call in the OpenAI shape or, as STATEK does, in Anthropic's."""
    try:
        return _anthropic_call(call) if call.get("type") == "tool_use" else _openai_call(call)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InvalidFormat(f"Unable to parse tool call request: {error}") from error


def _openai_call(call: _Call) -> ToolCallRequest:
    kind = call.get("type")
    if kind is not None and kind != "function":
        raise InvalidFormat(f"Unsupported tool call type: '{kind}'. Expected 'function' or 'tool_use'.")
    if "function" not in call:
        raise InvalidFormat("Missing 'function' key in tool call request.")
    function = call["function"]
    if "name" not in function:
        raise InvalidFormat("Missing 'name' in tool call function.")
    name = _tool_name(function["name"])
    try:
        arguments = json.loads(function.get("arguments", "{}"))
    except json.JSONDecodeError as error:
        raise InvalidFormat(f"Invalid JSON in 'arguments': {error}") from error
    if not isinstance(arguments, dict):
        raise InvalidFormat(f"'arguments' must decode to a JSON object, got {type(arguments).__name__}.")
    return ToolCallRequest(call.get("id", ""), name, arguments)


def _anthropic_call(call: _Call) -> ToolCallRequest:
    if "name" not in call:
        raise InvalidFormat("Missing 'name' in Anthropic tool_use block.")
    name = _tool_name(call["name"])
    arguments = call.get("input", {})
    if not isinstance(arguments, dict):
        raise InvalidFormat(f"'input' must be a dict, got {type(arguments).__name__}.")
    return ToolCallRequest(call.get("id", ""), name, arguments)


def _tool_name(name: JSON) -> str:
    if not isinstance(name, str):
        raise InvalidFormat(f"'name' must be a string, got {type(name).__name__}.")
    return name


def _reported_usage(usage: _Usage) -> ReportedUsage:
    cost = usage.get("cost")
    details: _Details = usage.get("prompt_tokens_details") or {}
    return ReportedUsage(
        prompt=_tokens(usage.get("prompt_tokens", 0)),
        completion=_tokens(usage.get("completion_tokens", 0)),
        cached=_tokens(details.get("cached_tokens", 0)),
        cost=_cost(cost),
    )


def _tokens(count: JSON) -> int | None:
    if count is None or isinstance(count, int):
        return count
    if isinstance(count, float):
        return int(count)
    raise TypeError(f"unsupported operand type(s) for +=: 'int' and {type(count).__name__!r}")


def _cost(cost: JSON) -> float | None:
    if cost is None or isinstance(cost, int | float):
        return cost
    raise TypeError(f"unsupported operand type(s) for +: 'float' and {type(cost).__name__!r}")


def reply_body(
    *,
    job_id: str,
    turn: int,
    at: float,
    model: str,
    content: str | None,
    calls: tuple[WireToolCall, ...] = (),
    finish_reason: str | None = None,
    usage: ReportedUsage | None = NO_USAGE,
) -> bytes:
    """Build a `chat.completion` body as compact UTF-8 JSON.

    `created` is virtual second `at` on top of the simulation's epoch. `finish_reason` is by default
    `tool_calls` or `stop`. The `usage` key is left out for `NO_USAGE` and is `null` for None.
    """
    reason = finish_reason or ("tool_calls" if calls else "stop")
    choice = _choice_json(content, calls, reason)
    ending = "}" if usage is not None and not usage.present else f',"usage":{_usage_json(usage)}}}'
    created = _EPOCH_SECONDS + int(at)
    text = (
        f'{{"id":"chatcmpl-{_json(job_id)[1:-1]}-{turn}","object":"chat.completion","created":{created},'
        f'"model":{_json(model)},"choices":[{choice}]{ending}'
    )
    return text.encode()


@lru_cache(maxsize=4096)
def _json(text: str) -> str:
    """Return `text` as a JSON string; escaped to ASCII where UTF-8 has no form for it (lone surrogates)."""
    plain = json.dumps(text, ensure_ascii=False)
    return plain if _is_utf8(plain) else json.dumps(text)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _choice_json(content: str | None, calls: tuple[WireToolCall, ...], reason: str) -> str:
    spoken = "null" if content is None else _json(content)
    tools = f',"tool_calls":[{",".join(map(_call_json, calls))}]' if calls else ""
    message = f'{{"role":"assistant","content":{spoken}{tools}}}'
    return f'{{"index":0,"message":{message},"finish_reason":{_json(reason)}}}'


def _call_json(call: WireToolCall) -> str:
    return (
        f'{{"id":{_json(call.id)},"type":"function","function":'
        f'{{"name":{_json(call.name)},"arguments":{_json(call.arguments)}}}}}'
    )


@lru_cache(maxsize=4096)
def _usage_json(usage: ReportedUsage | None) -> str:
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
    """Return equal counts as equal text: True and 1 are the same key of a cache."""
    return None if count is None else int(count)
