"""The limits on rescue parsing, and its results: calls and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from statek_sim.values import JSON


class Reason(StrEnum):
    """The reasons for rejecting what looks like a call."""

    CUT = "cut"
    """The reply ends inside the call."""
    BROKEN = "broken"
    """The call cannot be read without guessing."""
    NOT_OFFERED = "not_offered"
    """The call names a tool that was not offered."""
    SCHEMA = "schema"
    """The arguments do not match the tool's schema."""
    NOT_ALONE = "not_alone"
    """There is text next to the call, which may therefore be a quotation."""
    LIMIT = "limit"
    """The call is nested too deeply or too long, or there are too many calls."""
    REFORMAT = "reformat"
    """The last stage, reformatting by a model, returned nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one reply. A reply that exceeds any of them is rejected."""

    max_bytes: int = 4 * 1024 * 1024
    """Size of the reply in UTF-8 bytes."""
    max_calls: int = 128
    max_values: int = 20_000
    """Values in one call's arguments, including nested ones."""
    max_depth: int = 64
    """Nesting depth of containers."""
    max_repaired_tokens: int = 20_000
    """Tokens (strings, numbers, brackets) that the tolerant reader reads in one reply."""


@dataclass(frozen=True, slots=True)
class Span:
    """The reply's bytes from `start` to `end` (exclusive), encoded as UTF-8."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call by the model. `stages` contains the name of its format, followed by the names of the repairs."""

    name: str
    arguments: Mapping[str, JSON]
    stages: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why none of the reply's calls is executed. `why` is a sentence that may be shown to a model."""

    reason: Reason
    why: str
    span: Span
    name: str = ""
    """The called tool, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """The result of rescue parsing: the calls in order, or the refusal of what looked like one, never both.

    `text` is the text around the calls, or the whole text if there are none, without thinking. `steps` is the work
    done, measured in characters scanned and tokens read.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    thinking: str = ""
    refused: tuple[Refusal, ...] = ()
    steps: int = field(default=0, compare=False)

    @property
    def stages(self) -> tuple[str, ...]:
        """All stages used by the calls, each listed once, in order of first use."""
        return tuple(dict.fromkeys(stage for call in self.calls for stage in call.stages))

    def record(self) -> dict[str, JSON]:
        """Return the result in the form that `statek-sim rescue` prints."""
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
