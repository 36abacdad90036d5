"""Input and output of rescue parsing: limits, calls, refusals, the typed result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from statek_sim.values import JSON


class Reason(StrEnum):
    """Why an apparent call is not a call."""

    CUT = "cut"
    """The reply ends inside the call."""
    BROKEN = "broken"
    """The call cannot be read without guessing."""
    NOT_OFFERED = "not_offered"
    """The call names a tool that was not offered."""
    SCHEMA = "schema"
    """Its arguments do not fit the tool's schema."""
    NOT_ALONE = "not_alone"
    """There is text next to the call, so the call may be a quotation."""
    LIMIT = "limit"
    """It is too deep, too long, or there are too many."""
    REFORMAT = "reformat"
    """The last stage, a model's reformatting, returned nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read of one reply. Anything beyond a limit is refused."""

    max_bytes: int = 4 * 1024 * 1024
    """Bytes of a reply, as UTF-8."""
    max_calls: int = 128
    max_values: int = 20_000
    """Values in one call's arguments, including nested ones."""
    max_depth: int = 64
    """Nesting depth of containers."""
    max_repaired_tokens: int = 20_000
    """Tokens (strings, numbers, brackets) read by the tolerant reader in one reply."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes `start` up to `end` of the reply's UTF-8."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of the model. `stages` lists its dialect, then the repairs."""

    name: str
    arguments: Mapping[str, JSON]
    stages: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no call of the reply runs. `why` is a sentence that may be shown to the model."""

    reason: Reason
    why: str
    span: Span
    name: str = ""
    """The tool of the call, if it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """Result of rescue parsing: the calls in order, or why an apparent call is not a call, never both.

    `text` is the text before the calls, or all of it, without thinking. `steps` counts the work: characters scanned and
    tokens read.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    thinking: str = ""
    refused: tuple[Refusal, ...] = ()
    steps: int = field(default=0, compare=False)

    @property
    def stages(self) -> tuple[str, ...]:
        """All stages used by the calls, each once, in the order of first use."""
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
