"""STATEK's token estimate, an LLM call's usage, and totals across calls, jobs and scenarios.

Usage has three independent measures: bytes, from which STATEK estimates tokens; tokens counted with a tokenizer; and
tokens that the provider reports. A failed call has no usage (behaviour 5).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

from statek_sim.values import JSON

N = TypeVar("N", int, float, Decimal)

BYTES_PER_TOKEN: Final = 4
"""The number of bytes that STATEK counts as one token ("Harness Policies"; behaviour 5)."""


def approx_tokens(bytes_sent: int, bytes_received: int) -> int:
    """Return STATEK's token estimate for these totals: bytes divided by 4, rounded down."""
    return (bytes_sent + bytes_received) // BYTES_PER_TOKEN


NO_TOKENIZER: Final = "none"
"""The tokenizer label for totals without any calls."""


# A named tuple, not a frozen dataclass: every turn creates one, and it costs a third.
class TurnUsage(NamedTuple):
    """The usage of a successful LLM call: bytes as counted by STATEK, and tokens.

    A `reported_*` field is None if the provider did not report it; the cost is in the provider's currency.
    `tokenizer` is the label of the tokenizer that counted the measured tokens.
    """

    bytes_sent: int
    bytes_received: int
    measured_prompt: int
    measured_completion: int
    reported_prompt: int | None
    reported_completion: int | None
    reported_cached: int | None
    reported_cost: float | None
    tokenizer: str

    @property
    def approx_tokens(self) -> int:
        """STATEK's estimate for this call; due to rounding, the call estimates do not add up to the total estimate."""
        return approx_tokens(self.bytes_sent, self.bytes_received)

    @property
    def measured_tokens(self) -> int:
        """Prompt and completion tokens, counted with a tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompt and completion tokens that the provider reported; None if it reported neither."""
        return sum_reported(self.reported_prompt, self.reported_completion)


class UsageTotals:
    """The total usage of a job's, a scenario's or a run's calls; `add` and `merge` add calls."""

    __slots__ = (
        "_labels",
        "bytes_received",
        "bytes_sent",
        "measured_completion",
        "measured_prompt",
        "reported_cached",
        "reported_completion",
        "reported_cost",
        "reported_prompt",
        "turns",
    )

    def __init__(self) -> None:
        self.turns = 0
        self.bytes_sent = 0
        self.bytes_received = 0
        self.measured_prompt = 0
        self.measured_completion = 0
        self.reported_prompt: int | None = None
        self.reported_completion: int | None = None
        self.reported_cached: int | None = None
        self.reported_cost: float | None = None
        self._labels: tuple[str, ...] = ()

    def add(self, turn: TurnUsage) -> None:
        """Add a successful call's usage."""
        self._add(turn, 1, (turn.tokenizer,))

    def merge(self, other: UsageTotals) -> None:
        """Add the usage of all calls in `other`."""
        self._add(other, other.turns, other._labels)

    def _add(self, other: TurnUsage | UsageTotals, turns: int, labels: tuple[str, ...]) -> None:
        self.turns += turns
        self.bytes_sent += other.bytes_sent
        self.bytes_received += other.bytes_received
        self.measured_prompt += other.measured_prompt
        self.measured_completion += other.measured_completion
        self.reported_prompt = sum_reported(self.reported_prompt, other.reported_prompt)
        self.reported_completion = sum_reported(self.reported_completion, other.reported_completion)
        self.reported_cached = sum_reported(self.reported_cached, other.reported_cached)
        self.reported_cost = sum_reported(self.reported_cost, other.reported_cost)
        self._labels += tuple(label for label in labels if label not in self._labels)

    def copy(self) -> UsageTotals:
        """Return an independent copy."""
        same = UsageTotals()
        same.merge(self)
        return same

    @property
    def approx_tokens(self) -> int:
        """STATEK's estimate, which the harness compares with its token limit."""
        return approx_tokens(self.bytes_sent, self.bytes_received)

    @property
    def measured_tokens(self) -> int:
        """Prompt and completion tokens, counted with a tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompt and completion tokens that the provider reported; None if it reported none."""
        return sum_reported(self.reported_prompt, self.reported_completion)

    @property
    def tokenizer(self) -> str:
        """The labels of all tokenizers that counted tokens, sorted and joined by ` + `."""
        return " + ".join(sorted(self._labels)) or NO_TOKENIZER

    def as_dict(self) -> dict[str, JSON]:
        """Return the usage as JSON for reports and traces."""
        return {
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "approx_tokens": self.approx_tokens,
            "measured_tokens": self.measured_tokens,
            "measured_prompt": self.measured_prompt,
            "measured_completion": self.measured_completion,
            "reported_tokens": self.reported_tokens,
            "tokenizer": self.tokenizer,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UsageTotals):
            return NotImplemented
        return self._comparable() == other._comparable()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"UsageTotals({self.as_dict()!r})"

    def _comparable(self) -> tuple[object, ...]:
        """Return the values by which totals are compared, independent of tokenizer order."""
        return (
            self.turns,
            self.reported_prompt,
            self.reported_completion,
            self.reported_cached,
            self.reported_cost,
            self.as_dict(),
        )


def sum_reported(left: N | None, right: N | None) -> N | None:
    """Add two reported numbers; return None if the provider reported neither."""
    if left is None:
        return right
    return left if right is None else left + right
