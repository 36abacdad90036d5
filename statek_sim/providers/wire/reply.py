"""What a reply says, as a client reads it and as a server is told to write it, and how one tool call of it is read.

STATEK's client reads tool calls in OpenAI's shape and in Anthropic's with one function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final, Literal, TypedDict

from statek_sim.errors import InvalidFormat
from statek_sim.fast_dataclass import quick
from statek_sim.values import JSON


def compact(value: JSON) -> str:
    """Return `value` without spaces; escaped to ASCII where UTF-8 has no form for it (lone surrogates)."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain if _is_utf8(plain) else json.dumps(value, separators=(",", ":"))


def quoted(text: str) -> str:
    """Return `text` as a JSON string: `compact`, without an encoder of its own for each text."""
    return encode_basestring(text) if _is_utf8(text) else encode_basestring_ascii(text)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sse_event(data: str, *, name: str | None = None) -> bytes:
    """Return one event. `data` is one line, as JSON is."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n".encode()


def sse_events(stream: bytes) -> Iterator[str]:
    """Yield the data of each event; comments, names and events without data are passed over.

    The last event counts also when the blank line that ends it is missing: recordings get cut there.
    """
    lines: list[str] = []
    for line in [*stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []


MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading a body raises that is no reply; a tool call that cannot be parsed is `InvalidFormat` beside these.

RuntimeError is what STATEK's own clients raise for an answer without any content, such as that of another provider."""

Split = Callable[[str], Sequence[str]]
"""Cuts a text into the pieces that a stream sends one by one; joined they are the text again."""


def pieces_of(text: str | None, split: Split) -> Sequence[str]:
    """Return the pieces in which a stream sends a text; none for one that is empty."""
    return split(text) if text else ()


SIGNATURE: Final = "c2NyaXB0ZWQ="
"""The signature of all thoughts of a scripted model, in Base64."""

StopReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a reply ends, mostly in OpenAI's words; each format has words of its own for the same."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One tool call that a reply asks for.

    `id` is a string unless the provider misbehaves: STATEK hands back whatever came, and `""` when nothing
    did.
    """

    id: JSON
    name: str
    arguments: dict[str, JSON]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """What the provider says a call cost: tokens, and money in the provider's own currency.

    `present` is False when the body has no usage at all; the token counts are then 0, as in STATEK. A token
    count that is None was `null` in the body: STATEK fails with a `TypeError` when it adds it to a total,
    after it counted the bytes.
    """

    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0
    cost: float | None = None
    present: bool = True


NO_USAGE: Final = ReportedUsage(present=False)
"""A reply without usage."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What STATEK takes from a reply body. `text` is empty when there is none.

    `reasoning` is what the next requests carry back beside the text, keyed as messages hold it (see
    `wire.request`): OpenAI-style reasoning fields, or the whole turn in Anthropic's or Gemini's own blocks.
    """

    text: str
    tool_calls: tuple[ToolCallRequest, ...]
    usage: ReportedUsage
    reasoning: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class WireToolCall:
    """One tool call as it goes into a body; `arguments` is the raw string, valid JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireReply:
    """What a server answers, whatever the format.

    `id` is unique per reply and gets the format's prefix; `created` is in Unix seconds. `stop` is by default
    `tool_calls` or `stop`. The usage is left out for `NO_USAGE` and is `null` for None.
    `stop_sequence` is the text before which the reply ends, if it was told one. `echo`: what an answer in the format
    `responses` repeats of its request. `thinks`: signed thoughts come with it, as Anthropic's models have them where
    thinking is enabled, and Gemini's from version 3 on. `thinking`: what is shown of them. `refuses`: the text is a
    refusal.
    """

    id: str
    model: str
    created: int
    text: str | None
    calls: tuple[WireToolCall, ...] = ()
    stop: StopReason | None = None
    usage: ReportedUsage | None = NO_USAGE
    stop_sequence: str | None = None
    echo: Mapping[str, JSON] | None = None
    thinks: bool = False
    thinking: str = ""
    refuses: bool = False

    @property
    def reason(self) -> StopReason:
        """Why the reply ends."""
        return self.stop or ("refusal" if self.refuses else "tool_calls" if self.calls else "stop")


def reported_tokens(count: JSON) -> int | None:
    """Return a reported token count; what STATEK cannot add up fails with the text of its addition.

    A fractional count is cut.
    """
    if count is None or isinstance(count, int):
        return count
    if isinstance(count, float):
        return int(count)
    raise TypeError(f"unsupported operand type(s) for +=: 'int' and {type(count).__name__!r}")


def reported_cost(cost: JSON) -> float | None:
    """Return a reported cost; what STATEK cannot add up fails with the text of its addition."""
    if cost is None or isinstance(cost, int | float):
        return cost
    raise TypeError(f"unsupported operand type(s) for +: 'float' and {type(cost).__name__!r}")


def reported_usage(
    usage: dict[str, Any], prompt: str, completion: str, cached: str, *, details: str | None = None
) -> ReportedUsage:
    """Read the counts of a body's usage by their names; `details` names the object that holds `cached`."""
    cost = usage.get("cost")
    inner = usage if details is None else usage.get(details) or {}
    return ReportedUsage(
        prompt=reported_tokens(usage.get(prompt, 0)),
        completion=reported_tokens(usage.get(completion, 0)),
        cached=reported_tokens(inner.get(cached, 0)),
        cost=reported_cost(cost),
    )


def usage_member(
    name: str, usage: ReportedUsage | None, counts: Mapping[str, JSON], *, total: str | None = None
) -> dict[str, JSON]:
    """Return the usage under its `name` in a body, or nothing for a reply without usage. `total` names the sum."""
    if usage is None:
        return {name: None}
    if not usage.present:
        return {}
    written = dict(counts)
    if total is not None and usage.prompt is not None and usage.completion is not None:
        written[total] = usage.prompt + usage.completion
    if usage.cost is not None:
        written["cost"] = float(usage.cost)
    return {name: written}


def json_arguments(text: str) -> JSON:
    """Return the arguments of a call as a value; a text that is no JSON stays a string."""
    try:
        given: JSON = json.loads(text)
    except ValueError:
        return text
    return given


class _Function(TypedDict, total=False):
    name: JSON
    arguments: str


class WrittenCall(TypedDict, total=False):
    """A tool call as it should be in a body; nothing checks it before it is read."""

    id: JSON
    type: JSON
    function: _Function
    name: JSON
    input: JSON


def read_tool_call(call: WrittenCall) -> ToolCallRequest:
    """Read one tool call; a bad one is `InvalidFormat` with STATEK's text."""
    try:
        return _anthropic_call(call) if call.get("type") == "tool_use" else _openai_call(call)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InvalidFormat(f"Unable to parse tool call request: {error}") from error


def _openai_call(call: WrittenCall) -> ToolCallRequest:
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


def _anthropic_call(call: WrittenCall) -> ToolCallRequest:
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
