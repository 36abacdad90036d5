"""The limits of rescue parsing, and its results: calls and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from statek_sim.values import JSON


class Reason(StrEnum):
    """The reasons for refusing an apparent call."""

    CUT = "cut"
    """The reply ends inside the call."""
    BROKEN = "broken"
    """The call cannot be read without guessing."""
    NOT_OFFERED = "not_offered"
    """The call names a tool that was not offered."""
    SCHEMA = "schema"
    """The arguments do not fit the tool's schema."""
    NOT_ALONE = "not_alone"
    """There is text next to the call, so the call may be a quotation."""
    LIMIT = "limit"
    """The call is too deep or too long, or there are too many calls."""
    REFORMAT = "reformat"
    """The last stage, a model's reformatting, returned nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits for one reply. A reply that exceeds a limit is refused."""

    max_bytes: int = 4 * 1024 * 1024
    """Bytes of the reply in UTF-8."""
    max_calls: int = 128
    max_values: int = 20_000
    """Values in the arguments of one call, including nested values."""
    max_depth: int = 64
    """Nesting depth of containers."""
    max_repaired_tokens: int = 20_000
    """Tokens (strings, numbers, brackets) read by the tolerant reader in one reply."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from `start` to `end` (exclusive) of the reply, encoded as UTF-8."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of the model. `stages` has the name of its format, then the names of the repairs."""

    name: str
    arguments: Mapping[str, JSON]
    stages: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason why no call of the reply is executed. `why` is a sentence that a model may read."""

    reason: Reason
    why: str
    span: Span
    name: str = ""
    """The tool of the call, if it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """The result of rescue parsing: the calls in order, or the refusal of an apparent call, never both.

    `text` is the text around the calls, or the whole text if there are none; thinking is left out. `steps` counts the
    work in characters scanned and tokens read.
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
