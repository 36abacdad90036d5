"""What rescue parsing takes and gives: limits, calls, refusals, the typed result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from statek_sim.values import JSON


class Reason(StrEnum):
    """Why something that looks like a call is none."""

    CUT = "cut"
    """The reply ends inside the call."""
    BROKEN = "broken"
    """The call cannot be read without guessing."""
    NOT_OFFERED = "not_offered"
    """It names a tool that was not offered."""
    SCHEMA = "schema"
    """Its arguments do not fit the tool's schema."""
    QUOTED = "quoted"
    """It is shown, not made: inside code or introduced as an example."""
    LIMIT = "limit"
    """It is deeper, longer or more than is read."""
    DIALECT = "dialect"
    """It is written in another format than the one that was said to be the model's."""
    NOT_A_CALL = "not_a_call"
    """It is JSON, but no call (variant `document`)."""
    REFORMAT = "reformat"
    """The last stage, a model's reformatting, gave nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read of one reply. What is beyond a limit is refused."""

    max_bytes: int = 4 * 1024 * 1024
    """Of a reply, as UTF-8."""
    max_calls: int = 128
    max_values: int = 20_000
    """Of one call's arguments, nested ones included."""
    max_attempts: int = 1_000
    """Openings that turn out to be no call."""
    max_repaired_tokens: int = 20_000
    """Pieces (strings, numbers, brackets) read by the tolerant reader, in one reply."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes `start` up to `end` of the reply's UTF-8."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that the model made. `stages`: how it was read, first its dialect, then what had to be repaired."""

    name: str
    arguments: Mapping[str, JSON]
    stages: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that looks like a call and is not taken. `why` is a sentence that may be shown to the model."""

    reason: Reason
    why: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """What a reply says: the calls in order, the text around them without thinking, and what was refused.

    `value` is what variant `document` parsed, whatever it is. `steps` counts the work: characters looked at and
    pieces read.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    thinking: str = ""
    refused: tuple[Refusal, ...] = ()
    value: JSON = None
    steps: int = field(default=0, compare=False)

    @property
    def stages(self) -> tuple[str, ...]:
        """Every stage that some call took, each once, in the order of their first use."""
        return tuple(dict.fromkeys(stage for call in self.calls for stage in call.stages))

    def record(self) -> dict[str, JSON]:
        """Return the result as `statek-sim rescue` prints it."""
        return {
            "calls": [{"name": call.name, "arguments": dict(call.arguments)} for call in self.calls],
            "text": self.text,
            "stages": list(self.stages),
            "refused": [
                {
                    "reason": refusal.reason.value,
                    "why": refusal.why,
                    "bytes": [refusal.span.start, refusal.span.end],
                }
                for refusal in self.refused
            ],
        }
