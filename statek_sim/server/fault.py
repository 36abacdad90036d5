"""Injected faults: the kinds of faults, the requests they affect, and how they change a response.

    FaultRule(fault=HttpError(429, retry_after=2), positions=(1, 3))     by position, from 1
    FaultRule(fault=Reset(after=3), rate=0.1, seed=7)                    by rate: the same requests every time
    FaultRule(fault=NullUsage(), when=Condition(model=equals("gpt-4o"))) by condition

Several faults may affect the same request; they are applied in `ORDER`. Rules with mutually exclusive faults must not
select the same position. If such rules select the same request by other conditions, the first rule applies (rules with
positions come first), and the second rule may apply to the next request.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.providers.condition import Condition, accepts
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import HttpError as HttpError
from statek_sim.providers.wire.reply import compact, sse_events
from statek_sim.providers.wire.request import FormatName
from statek_sim.server.exchange import Answer, Frame, Silence, Streamed, Whole


@dataclass(frozen=True, slots=True)
class NoAnswerAtAll:
    """Sends no response: the connection stays open until the client gives up. No scripted reply is used."""


@dataclass(frozen=True, slots=True)
class SlowFirstByte:
    """Delays the start of the response by this many real seconds."""

    seconds: float

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class SlowTokens:
    """Delays each event in a stream after the first event by this many real seconds."""

    seconds: float

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class Reset:
    """Resets the connection after this many events of a stream, or before the first byte of any other response.

    A response that is not streamed is never reset midway, because what the client reads would depend on the machine.
    """

    after: int = 1

    def __post_init__(self) -> None:
        if self.after < 0:
            raise BadInput(f"expected `after` to be 0 or more events, got {self.after!r}")


@dataclass(frozen=True, slots=True)
class Truncated:
    """Sends only the first half of the response, then closes the connection normally."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Sends invalid JSON: the response, or the middle event of a stream, ends in `]` instead of `}`."""


@dataclass(frozen=True, slots=True)
class EmptyChoices:
    """Sends a response with an empty `choices` list (`candidates` or `content` in other formats)."""


@dataclass(frozen=True, slots=True)
class NullUsage:
    """Sends a response in which usage is null."""


@dataclass(frozen=True, slots=True)
class NoUsage:
    """Sends a response without a usage field."""


@dataclass(frozen=True, slots=True)
class WrongContentType:
    """Sends a response with the wrong content type."""

    content_type: str = "text/html; charset=utf-8"


Fault = (
    HttpError
    | NoAnswerAtAll
    | SlowFirstByte
    | SlowTokens
    | Reset
    | Truncated
    | Malformed
    | EmptyChoices
    | NullUsage
    | NoUsage
    | WrongContentType
)

ANSWERED: Final = (SlowFirstByte, SlowTokens, NullUsage, NoUsage)
"""Faults that do not prevent the client from receiving the complete reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """A fault and the conditions for the requests it affects. At least one condition is required; all must be met.

    `positions` are request numbers, starting at 1 and counting chats, embeddings and token counts. `rate` is the
    fraction of otherwise matching requests to affect; they are chosen at random with `seed`, so the same conversation
    always gets the same faults. `times` is the maximum number of affected requests.
    """

    fault: Fault
    positions: tuple[int, ...] = ()
    rate: float | None = None
    seed: int = 0
    when: Condition | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.fault, Fault):
            raise BadInput(f"fault {self.fault!r}: expected a fault, such as HttpError(500)")
        if not self.positions and self.rate is None and self.when is None and self.times is None:
            raise BadInput(
                f"fault {self.fault}: expected positions, rate, when or times; use rate=1.0 for every request"
            )
        if not isinstance(self.positions, tuple):
            raise BadInput(
                f"fault {self.fault}: expected positions as a tuple of numbers, such as (1,), got {self.positions!r}"
            )
        if self.rate is not None and not 0 <= self.rate <= 1:
            raise BadInput(f"fault {self.fault}: expected a rate from 0 to 1, got {self.rate!r}")
        if any(position < 1 for position in self.positions):
            raise BadInput(f"fault {self.fault}: positions start at 1, got {self.positions!r}")
        if self.times is not None and self.times < 1:
            raise BadInput(f"fault {self.fault}: expected times to be 1 or more, got {self.times!r}")

    def __str__(self) -> str:
        parts = [f"on request {_listed(self.positions)}"] if self.positions else []
        parts += [f"at a rate of {self.rate:g}, seed {self.seed}"] if self.rate is not None else []
        parts += [f"when {self.when}"] if self.when is not None else []
        return " ".join((f"fault {self.fault}", *parts))


ORDER: Final[tuple[type[Fault], ...]] = (
    HttpError,
    NoAnswerAtAll,
    NullUsage,
    NoUsage,
    EmptyChoices,
    Malformed,
    Truncated,
    SlowFirstByte,
    SlowTokens,
    WrongContentType,
    Reset,
)
"""The order in which faults are applied to a response: content, bytes, timing, content type, reset."""

_ABOUT_A_REPLY: Final = (NullUsage, NoUsage, EmptyChoices, SlowTokens)


def exclude_each_other(first: Fault, second: Fault) -> bool:
    """Return whether the two faults are mutually exclusive."""
    pair = (first, second)
    if any(isinstance(fault, NoAnswerAtAll) for fault in pair) or type(first) is type(second):
        return True
    if any(isinstance(fault, HttpError) for fault in pair):
        return any(isinstance(fault, _ABOUT_A_REPLY) for fault in pair)
    return {type(first), type(second)} == {NullUsage, NoUsage}


def check_together(rules: Sequence[FaultRule]) -> None:
    """Raise `BadInput` if two rules with mutually exclusive faults select the same position."""
    certain = [rule for rule in rules if rule.rate is None and rule.when is None]
    for number, rule in enumerate(certain):
        for other in certain[:number]:
            shared = sorted(set(rule.positions) & set(other.positions))
            if shared and exclude_each_other(rule.fault, other.fault):
                raise BadInput(
                    f"{other} and {rule} exclude each other but both select request {shared[0]}; select different "
                    "requests"
                )


def _listed(positions: Iterable[int]) -> str:
    return " and ".join(map(str, positions))


def _check_seconds(seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadInput(f"expected a finite delay of 0 seconds or more, got {seconds!r}")


class FaultSchedule:
    """Decides which faults affect each request."""

    def __init__(self, rules: Sequence[FaultRule]) -> None:
        check_together(rules)
        self._rules = tuple(_Rule(rule) for rule in rules)
        self._ranked = sorted(self._rules, key=lambda rule: not rule.rule.positions)

    def faults(self, request: ChatRequest, position: int) -> tuple[Fault, ...]:
        """Return a request's faults, sorted by `ORDER`, and count them; `position` is the one-based request number."""
        struck: list[Fault] = []
        for rule in self._ranked:
            fault = rule.rule.fault
            if rule.meets(request, position) and not any(
                exclude_each_other(fault, other) for other in struck
            ):
                rule.strike(position)
                struck.append(fault)
        return tuple(sorted(struck, key=lambda fault: ORDER.index(type(fault))))

    def left(self) -> list[str]:
        """Return a message for each rule that affected no request, or did not affect all of its positions."""
        return [f"{rule.rule} {rule.missed}" for rule in self._rules if rule.missed]


class _Rule:
    """A fault rule with its random number generator and the positions it has not yet affected."""

    __slots__ = ("_chance", "_struck", "_waiting", "rule")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self._chance = random.Random(rule.seed)
        self._struck = 0
        self._waiting = set(rule.positions)

    def meets(self, request: ChatRequest, position: int) -> bool:
        """Return whether the rule selects this request; call once per request to keep random draws reproducible."""
        rule = self.rule
        if rule.times is not None and self._struck >= rule.times:
            return False
        if rule.positions and position not in rule.positions:
            return False
        if rule.when is not None and not accepts(rule.when, request):
            return False
        if rule.rate is None:
            return True
        if self._chance.random() < rule.rate:
            return True
        self._waiting.discard(position)
        return False

    def strike(self, position: int) -> None:
        """Record that the rule affected the request at `position`."""
        self._waiting.discard(position)
        self._struck += 1

    @property
    def missed(self) -> str:
        """What the rule did not affect, as a clause for a message; empty if it affected everything it should."""
        if self._waiting and len(self._waiting) < len(set(self.rule.positions)):
            return f"did not affect request {_listed(sorted(self._waiting))}"
        if self._waiting or (self.rule.rate is None and not self._struck):
            return "affected no request"
        return ""


_CHOICES: Final[Mapping[FormatName, tuple[str, ...]]] = {
    "openai": ("choices", "data"),
    "responses": ("output",),
    "anthropic": ("content",),
    "gemini": ("candidates", "embeddings"),
}
_ABOUT_CONTENT: Final = (
    "content_block",
    "response.output",
    "response.content_part",
    "response.function_call",
)
"""Type prefixes of stream events that are removed together with the choices."""


def with_fault(answer: Answer, fault: Fault, wire: FormatName) -> Answer:
    """Return `answer` with `fault` applied, if the fault affects bytes or timing; other faults leave it unchanged."""
    if isinstance(answer, Silence) or (isinstance(answer, Streamed) and not answer.frames):
        return answer
    match fault:
        case WrongContentType(content_type=content_type):
            return replace(answer, content_type=content_type)
        case SlowFirstByte(seconds=seconds):
            return _later(answer, seconds)
        case SlowTokens(seconds=seconds):
            return _slower(answer, seconds)
        case Reset(after=after):
            return _cut_off(answer, after)
        case Truncated():
            return _truncated(answer)
        case Malformed():
            return _malformed(answer)
        case EmptyChoices():
            return _emptied(answer, wire)
        case _:
            return answer


def _later(answer: Whole | Streamed, seconds: float) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, delay=answer.delay + seconds)
    first, *rest = answer.frames
    return replace(answer, frames=(Frame(first.delay + seconds, first.data), *rest))


def _slower(answer: Whole | Streamed, seconds: float) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return answer
    first, *rest = answer.frames
    return replace(answer, frames=(first, *(Frame(frame.delay + seconds, frame.data) for frame in rest)))


def _cut_off(answer: Whole | Streamed, after: int) -> Streamed:
    if isinstance(answer, Streamed):
        return replace(answer, frames=answer.frames[:after], reset=True)
    return Streamed(
        frames=(Frame(answer.delay, b""),),
        status=answer.status,
        content_type=answer.content_type,
        headers=answer.headers,
        reset=True,
    )


def _truncated(answer: Whole | Streamed) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, body=answer.body[: len(answer.body) // 2])
    *kept, last = answer.frames[: len(answer.frames) // 2 + 1]
    return replace(answer, frames=(*kept, Frame(last.delay, last.data[: len(last.data) // 2])))


def _malformed(answer: Whole | Streamed) -> Whole | Streamed:
    if isinstance(answer, Whole):
        return replace(answer, body=_misclosed(answer.body))
    frames = list(answer.frames)
    middle = (len(frames) - 1) // 2
    frames[middle] = Frame(frames[middle].delay, _misclosed(frames[middle].data))
    return replace(answer, frames=tuple(frames))


def _misclosed(data: bytes) -> bytes:
    """Return the JSON with a bracket in place of the brace that closes the outermost object."""
    before, brace, after = data.rpartition(b"}")
    return before + b"]" + after if brace else data + b"]"


def _emptied(answer: Whole | Streamed, wire: FormatName) -> Whole | Streamed:
    keys = _CHOICES[wire]
    if isinstance(answer, Whole):
        return replace(answer, body=_without_choices(answer.body.decode(), keys))
    frames = [
        Frame(frame.delay, emptied)
        for frame in answer.frames
        if (emptied := _event_without_choices(frame.data, keys)) is not None
    ]
    return replace(answer, frames=tuple(frames))


def _event_without_choices(data: bytes, keys: tuple[str, ...]) -> bytes | None:
    """Return an event with empty choices, or None for an event that only describes a choice."""
    events = list(sse_events(data))
    if len(events) != 1 or not events[0].startswith("{"):
        return data
    if str(json.loads(events[0]).get("type", "")).startswith(_ABOUT_CONTENT):
        return None
    return data.replace(events[0].encode(), _without_choices(events[0], keys))


def _without_choices(text: str, keys: tuple[str, ...]) -> bytes:
    """Return JSON text with empty choices, also in `response`; other text is returned unchanged."""
    try:
        body = json.loads(text)
    except ValueError:
        return text.encode()
    for holder in (body, body.get("response")) if isinstance(body, dict) else ():
        if isinstance(holder, dict):
            holder.update({key: [] for key in keys if key in holder})
    return compact(body).encode()
