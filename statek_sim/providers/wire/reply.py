"""The content of a reply in a common form for all formats, and the functions that parse and write its parts.

STATEK's client uses the same function for tool calls in the OpenAI and Anthropic formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

from statek_sim.errors import InvalidFormat
from statek_sim.values import JSON

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def compact(value: JSON) -> str:
    """Return a value as JSON without spaces, escaped to ASCII if it contains lone surrogates."""
    text = _ENCODE(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def sse_event(data: str, *, name: str | None = None) -> bytes:
    """Return one server-sent event; `data` must be a single line."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n".encode()


def sse_events(stream: bytes) -> Iterator[str]:
    """Yield the data from each server-sent event; comments, event names and events without data are skipped.

    The last event need not end with a blank line, because recordings may be truncated.
    """
    lines: list[str] = []
    for line in [*stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []


MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Exceptions that `read_reply` raises for a body that is not a reply, in addition to `InvalidFormat` for a tool call.

Like STATEK's clients, `read_reply` raises `RuntimeError` for a response without content.
"""

Split = Callable[[str], Sequence[str]]
"""Splits a string into the pieces to send in a stream; when joined, they equal the string."""


def pieces_of(text: str | None, split: Split) -> Sequence[str]:
    """Return the pieces in which a stream sends a string; empty for an empty string."""
    return split(text) if text else ()


SIGNATURE: Final = "c2NyaXB0ZWQ="
"""The signature of a scripted model's thoughts, in Base64."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A web page that an answer cites for `span`, a part of the text; an empty span means the whole text.

    `quote` is the text quoted from the page.
    """

    url: str
    title: str = ""
    span: str = ""
    quote: str = ""

    def place(self, text: str) -> tuple[int, int] | None:
        """Return the span's start and end (exclusive) in a string, or None if the string does not contain it."""
        start = text.find(self.span)
        return None if start < 0 else (start, start + len(self.span or text))


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token in an answer, with its log probability; `others` are alternative tokens with their log probabilities."""

    text: str
    logprob: float
    others: tuple[tuple[str, float], ...] = ()

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """The token and the alternatives, most likely first; empty if there are no alternatives."""
        return (
            sorted([(self.text, self.logprob), *self.others], key=lambda one: -one[1]) if self.others else []
        )


StopReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a reply ended; each format translates this into its own term."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call in a reply.

    `id` may have any JSON type, because STATEK returns it unchanged; a missing id is `""`.
    """

    id: JSON
    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """The usage that a provider reports: tokens, and the cost in the provider's own currency.

    `present` is False for a body without usage; the token counts are then 0, as in STATEK. A token count of None is
    sent as `null`. STATEK raises a `TypeError` when it adds such a count to a total, after counting the bytes.
    """

    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0
    cost: float | None = None
    present: bool = True


NO_USAGE: Final = ReportedUsage(present=False)
"""The usage for a reply whose body contains no usage."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The parts of a reply body that STATEK uses; `text` is empty if the reply has no text.

    Later requests repeat `reasoning` together with the text, under the keys in `wire.request`: OpenAI's reasoning
    fields, or the whole turn in Anthropic's or Gemini's blocks.
    """

    text: str
    tool_calls: tuple[ToolCallRequest, ...]
    usage: ReportedUsage
    reasoning: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class WireToolCall:
    """A tool call as a server sends it; `arguments` is a string that need not be valid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireReply:
    """A server's response, independent of the format.

    `id` is unique per reply, without the format's prefix; `created` is in Unix seconds. `stop` defaults to `tool_calls`
    or `stop`. With `NO_USAGE`, the body contains no usage; with None, the usage is `null`. `stop_sequence` is the
    requested sequence at which the reply was cut off. `echo` contains the request fields that the `responses` format
    repeats. `thinks` adds signed thoughts, like those from Anthropic's thinking models and from Gemini 3 and later;
    `thinking` is their visible text. `refuses` marks the text as a refusal. `citations` and `tokens` describe the text
    before it was cut off, if it was.
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
    citations: tuple[Citation, ...] = ()
    tokens: tuple[ScoredToken, ...] = ()

    @property
    def cited(self) -> list[tuple[int, int, Citation]]:
        """Each citation with its span's start and end (exclusive), in text order."""
        found = [(one.place(self.text or ""), one) for one in self.citations]
        return sorted(((*place, one) for place, one in found if place), key=lambda one: one[:2])

    @property
    def scored(self) -> list[ScoredToken]:
        """The scored tokens that the text still contains in full."""
        left, found = self.text or "", []
        for token in self.tokens:
            if not left.startswith(token.text):
                break
            found.append(token)
            left = left[len(token.text) :]
        return found

    def pieces(self, split: Split) -> Iterator[tuple[str, ScoredToken | None]]:
        """Yield the pieces in which a stream sends the text: each scored token, then the rest as divided by `split`."""
        scored = self.scored
        yield from ((token.text, token) for token in scored)
        rest = (self.text or "")[sum(len(token.text) for token in scored) :]
        yield from ((piece, None) for piece in pieces_of(rest, split))

    @property
    def reason(self) -> StopReason:
        """Why the reply ended."""
        return self.stop or ("refusal" if self.refuses else "tool_calls" if self.calls else "stop")


def reported_tokens(count: JSON) -> int | None:
    """Return a reported token count, truncated to an integer.

    Raises the same `TypeError` as STATEK's addition if the value is not a number.
    """
    if count is None or isinstance(count, int):
        return count
    if isinstance(count, float):
        return int(count)
    raise TypeError(f"unsupported operand type(s) for +=: 'int' and {type(count).__name__!r}")


def reported_cost(cost: JSON) -> float | None:
    """Return a reported cost; raises the same `TypeError` as STATEK's addition if the value is not a number."""
    if cost is None or isinstance(cost, int | float):
        return cost
    raise TypeError(f"unsupported operand type(s) for +: 'float' and {type(cost).__name__!r}")


def reported_usage(
    usage: dict[str, Any], prompt: str, completion: str, cached: str, *, details: str | None = None
) -> ReportedUsage:
    """Return the usage reported under a body's `usage` key.

    `prompt`, `completion` and `cached` are the keys to read; `details` is the key of the inner object that contains
    `cached`.
    """
    cost = usage.get("cost")
    inner = usage if details is None else usage.get(details) or {}
    return ReportedUsage(
        prompt=reported_tokens(usage.get(prompt, 0)),
        completion=reported_tokens(usage.get(completion, 0)),
        cached=reported_tokens(inner.get(cached, 0)),
        cost=reported_cost(cost),
    )


def usage_member(
    name: str,
    usage: ReportedUsage | None,
    counts: Mapping[str, JSON],
    *,
    total: str | None = None,
    details: Mapping[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Return usage under the key `name`: the `counts`, their sum as `total`, `details`, and the cost.

    The dict is empty for a reply without usage.
    """
    if usage is None:
        return {name: None}
    if not usage.present:
        return {}
    written = dict(counts)
    if total is not None and usage.prompt is not None and usage.completion is not None:
        written[total] = usage.prompt + usage.completion
    written |= details or {}
    if usage.cost is not None:
        written["cost"] = float(usage.cost)
    return {name: written}


def json_arguments(text: str) -> JSON:
    """Return a call's parsed arguments, or the original string if it is not JSON."""
    try:
        given: JSON = json.loads(text)
    except ValueError:
        return text
    return given


class _Function(TypedDict, total=False):
    name: JSON
    arguments: str


class WrittenCall(TypedDict, total=False):
    """The structure of a tool call in a body, before validation."""

    id: JSON
    type: JSON
    function: _Function
    name: JSON
    input: JSON


def read_tool_call(call: WrittenCall) -> ToolCallRequest:
    """Return a parsed tool call; raises `InvalidFormat` with STATEK's message for an invalid call."""
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
