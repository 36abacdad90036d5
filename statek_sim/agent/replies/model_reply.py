"""Reads a provider's answer for the loop: its text, the calls as written, and the finish reason.

STATEK's own reader (`providers.wire`) fails on a call whose arguments are not JSON. Here, the failure is reported to
the model, so a call keeps its arguments as a string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from statek_sim.agent.effects import WrittenCall
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import MALFORMED, ReportedUsage, compact
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON

_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The contents of one model answer.

    `native` contains fields that are sent back to the provider with the next request, in addition to the text (see
    `wire.request`). `unreadable` is why the answer cannot be read; all other fields are then empty.
    """

    text: str
    calls: tuple[WrittenCall, ...]
    usage: ReportedUsage
    truncated: bool = False
    native: Mapping[str, JSON] | None = None
    unreadable: str | None = None


_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
_NATIVE = frozenset(_THOUGHTS)
_TEXTS = frozenset({"text", "output_text"})
_SHOWN: Final = 200
"""The maximum number of characters quoted from a provider's message."""
_NOTHING = ReportedUsage(present=False)


def read_model_reply(body: bytes, wire: FormatName) -> ModelReply:
    """Return the contents of a successful answer in this format."""
    try:
        return _openai(body) if wire == "openai" else _other(body, wire)
    except MALFORMED as error:
        return ModelReply("", (), _NOTHING, unreadable=f"{type(error).__name__}: {error}")


def _openai(body: bytes) -> ModelReply:
    answer = _read(body)
    if not answer.get("choices"):
        return ModelReply("", (), _usage(answer.get("usage")), unreadable=_no_choices(answer))
    choice = answer["choices"][0]
    message = choice["message"]
    written = message.get("tool_calls")

    calls = tuple([_written(call, number) for number, call in enumerate(written)]) if written else ()
    content = message.get("content")
    usage = _usage(answer.get("usage"))
    native = None
    if not _NATIVE.isdisjoint(message):
        native = {key: message[key] for key in _THOUGHTS if key in message}
    return ModelReply(
        content if isinstance(content, str) else _parts(content),
        calls,
        usage,
        choice.get("finish_reason") in _CUT,
        native,
    )


def _parts(content: object) -> str:
    """Return the text of content given as a list of parts, as some servers send it."""
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXTS]
    return "".join(text for text in texts if isinstance(text, str))


def _no_choices(answer: Mapping[str, JSON]) -> str:
    """Return why an answer has no choices, in the provider's own words if available."""
    error = answer.get("error")
    words = error.get("message", compact(error)) if isinstance(error, dict) else error
    return f"the answer has no choices{'' if words is None else f': {str(words)[:_SHOWN]}'}"


def _read(body: bytes) -> Any:
    """Parse JSON like `json.loads`, several times faster; fall back to `json.loads` if the faster parser fails."""
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body)


def _written(call: Mapping[str, JSON], number: int) -> WrittenCall:
    function = call.get("function")
    named: Mapping[str, JSON] = function if isinstance(function, dict) else {}
    name, arguments, id_ = named.get("name"), named.get("arguments"), call.get("id")
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        # Some providers send an empty string for a tool without parameters.
        arguments = "{}"
    return WrittenCall(
        id_ if isinstance(id_, str) and id_ else f"call-{number + 1}",
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, str) else compact(arguments),
    )


def _usage(usage: object) -> ReportedUsage:
    if not isinstance(usage, dict):
        return _NOTHING
    details = usage.get("prompt_tokens_details")
    cost = usage.get("cost")
    return ReportedUsage(
        prompt=_count(usage.get("prompt_tokens", 0)),
        completion=_count(usage.get("completion_tokens", 0)),
        cached=_count(details.get("cached_tokens", 0)) if isinstance(details, dict) else 0,
        cost=cost if isinstance(cost, int | float) else None,
    )


def _count(value: object) -> int | None:
    if type(value) is int:
        return value
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _other(body: bytes, wire: FormatName) -> ModelReply:
    reply = FORMATS[wire].read_reply(body)
    answer = json.loads(body)
    stop = answer.get("stop_reason") if wire == "anthropic" else _finish(answer)
    calls = tuple(
        WrittenCall(
            call.id if isinstance(call.id, str) and call.id else f"call-{number + 1}",
            call.name,
            compact(call.arguments),
        )
        for number, call in enumerate(reply.tool_calls)
    )
    return ModelReply(reply.text, calls, reply.usage, truncated=stop in _CUT, native=reply.reasoning)


def _finish(answer: Mapping[str, JSON]) -> JSON:
    candidates = answer.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else {}
    return first.get("finishReason") if isinstance(first, dict) else None
