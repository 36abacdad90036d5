"""The contents of a reply, for a client that reads it and a server that writes it, and the parser of a tool call.

STATEK's client reads tool calls in OpenAI's shape and in Anthropic's with one function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final, Literal, TypedDict

from statek_sim.errors import InvalidFormat
from statek_sim.values import JSON


def compact(value: JSON) -> str:
    """Return `value` as JSON without spaces; escaped to ASCII if UTF-8 cannot encode it (lone surrogates)."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain if _is_utf8(plain) else json.dumps(value, separators=(",", ":"))


def quoted(text: str) -> str:
    """Return `text` as a JSON string, like `compact`, but without creating an encoder for each text."""
    return encode_basestring(text) if _is_utf8(text) else encode_basestring_ascii(text)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sse_event(data: str, *, name: str | None = None) -> bytes:
    """Return one event. `data` is a single line, such as JSON."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n".encode()


def sse_events(stream: bytes) -> Iterator[str]:
    """Yield the data of each event; comments, names and events without data are skipped.

    The last event counts even without the blank line that ends it: recordings may be cut there.
    """
    lines: list[str] = []
    for line in [*stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []


MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Exceptions from reading a body that is not a reply; an invalid tool call raises `InvalidFormat` instead.

STATEK's own clients raise RuntimeError for an answer without content, such as one in another provider's format.
"""

Split = Callable[[str], Sequence[str]]
"""Cuts a text into the pieces of a stream; joined, they are the text again."""


def pieces_of(text: str | None, split: Split) -> Sequence[str]:
    """Return the pieces in which a stream sends a text; none for an empty text."""
    return split(text) if text else ()


SIGNATURE: Final = "c2NyaXB0ZWQ="
"""The signature of a scripted model's thoughts, in Base64."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A web page that an answer cites: for `span`, a part of its text, or for all of it if that is empty.

    `quote` is the text of the page that was used.
    """

    url: str
    title: str = ""
    span: str = ""
    quote: str = ""

    def place(self, text: str) -> tuple[int, int] | None:
        """Return the first and the last-plus-one index of the span in a text; None if the text was cut before."""
        start = text.find(self.span)
        return None if start < 0 else (start, start + len(self.span or text))


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token of an answer with its log probability, and those of alternative tokens."""

    text: str
    logprob: float
    others: tuple[tuple[str, float], ...] = ()

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """All tokens in this place, the most likely first; empty without others."""
        return (
            sorted([(self.text, self.logprob), *self.others], key=lambda one: -one[1]) if self.others else []
        )


StopReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a reply ends, mostly in OpenAI's terms; each format has its own."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One tool call in a reply.

    `id` is a string unless the provider misbehaves: STATEK returns it unchanged, and `""` if there was none.
    """

    id: JSON
    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUsage:
    """The usage that the provider reports: tokens, and cost in the provider's own currency.

    `present` is False if the body has no usage at all; the token counts are then 0, as in STATEK. A token count of None
    was `null` in the body: STATEK fails with a `TypeError` when it adds it to a total, after it counted the bytes.
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
    """The contents of a reply body that STATEK uses. `text` is empty if there is none.

    `reasoning` is sent back in the next requests in addition to the text, keyed as in messages (see `wire.request`):
    OpenAI-style reasoning fields, or the whole turn in Anthropic's or Gemini's own blocks.
    """

    text: str
    tool_calls: tuple[ToolCallRequest, ...]
    usage: ReportedUsage
    reasoning: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class WireToolCall:
    """One tool call as written to a body; `arguments` is the raw string, valid JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireReply:
    """A server's answer in any format.

    `id` is unique per reply and gets the format's prefix; `created` is in Unix seconds. `stop` is by default
    `tool_calls` or `stop`. The usage is left out for `NO_USAGE` and is `null` for None. `stop_sequence` is the
    requested text before which the reply ends. `echo`: the parts of a request that an answer in the format `responses`
    repeats. `thinks`: include signed thoughts, as Anthropic's models do if thinking is enabled, and Gemini's from
    version 3 on. `thinking`: their visible text. `refuses`: the text is a refusal. `citations` and `tokens` belong to
    the text, which may have been cut later.
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
        """The citations with the start and end of their spans in the text, in the order of the text."""
        found = [(one.place(self.text or ""), one) for one in self.citations]
        return sorted(((*place, one) for place, one in found if place), key=lambda one: one[:2])

    @property
    def scored(self) -> list[ScoredToken]:
        """The tokens that are wholly in the text."""
        left, found = self.text or "", []
        for token in self.tokens:
            if not left.startswith(token.text):
                break
            found.append(token)
            left = left[len(token.text) :]
        return found

    def pieces(self, split: Split) -> Iterator[tuple[str, ScoredToken | None]]:
        """Yield the pieces in which a stream sends the text: the scored tokens, else those of `split`."""
        scored = self.scored
        yield from ((token.text, token) for token in scored)
        rest = (self.text or "")[sum(len(token.text) for token in scored) :]
        yield from ((piece, None) for piece in pieces_of(rest, split))

    @property
    def reason(self) -> StopReason:
        """Why the reply ends."""
        return self.stop or ("refusal" if self.refuses else "tool_calls" if self.calls else "stop")


def reported_tokens(count: JSON) -> int | None:
    """Return a reported token count; for one that STATEK cannot add up, raise the error of its addition.

    A fractional count is truncated.
    """
    if count is None or isinstance(count, int):
        return count
    if isinstance(count, float):
        return int(count)
    raise TypeError(f"unsupported operand type(s) for +=: 'int' and {type(count).__name__!r}")


def reported_cost(cost: JSON) -> float | None:
    """Return a reported cost; for one that STATEK cannot add up, raise the error of its addition."""
    if cost is None or isinstance(cost, int | float):
        return cost
    raise TypeError(f"unsupported operand type(s) for +: 'float' and {type(cost).__name__!r}")


def reported_usage(
    usage: dict[str, Any], prompt: str, completion: str, cached: str, *, details: str | None = None
) -> ReportedUsage:
    """Read the counts of a body's usage by name; `details` is the object with `cached`."""
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
    """Return the usage as member `name` of a body, or an empty dict without usage. `total` names the sum."""
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
    """Return the arguments of a call as a value; a string that is not JSON stays unchanged."""
    try:
        given: JSON = json.loads(text)
    except ValueError:
        return text
    return given


class _Function(TypedDict, total=False):
    name: JSON
    arguments: str


class WrittenCall(TypedDict, total=False):
    """The expected shape of a tool call in a body, before it is validated."""

    id: JSON
    type: JSON
    function: _Function
    name: JSON
    input: JSON


def read_tool_call(call: WrittenCall) -> ToolCallRequest:
    """Read one tool call; an invalid one is `InvalidFormat` with STATEK's text."""
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
