"""STATEK's token estimate, the usage of one LLM call, and totals over calls, jobs and scenarios.

Three separate columns: bytes and STATEK's estimate of them, tokens measured here with a tokenizer, tokens that the
provider reported. A failed call has no usage at all (behaviour 5).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from statek_sim.values import JSON

BYTES_PER_TOKEN: Final = 4
"""STATEK's estimate ("Harness Policies"; behaviour 5)."""


def approx_tokens(bytes_sent: int, bytes_received: int) -> int:
    """Return STATEK's token estimate: the totals are divided once, rounding down."""
    return (bytes_sent + bytes_received) // BYTES_PER_TOKEN


NO_TOKENIZER: Final = "none"
"""The label of totals without measurements."""


# A named tuple, not a frozen dataclass: every turn creates one, and it costs a third.
class TurnUsage(NamedTuple):
    """The usage of one successful LLM call: bytes as STATEK counts them, otherwise tokens.

    A `reported_*` of None means that the provider did not report it; its cost is in the provider's currency.
    `tokenizer` is `ModelTokenizer.label`.
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
        """STATEK's estimate for this call alone; the estimates of calls do not add up to the total's."""
        return approx_tokens(self.bytes_sent, self.bytes_received)

    @property
    def measured_tokens(self) -> int:
        """Prompt and completion, counted with a tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompt and completion as the provider reported them; None if it reported neither."""
        return _sum_reported(self.reported_prompt, self.reported_completion)


class UsageTotals:
    """A running sum of `TurnUsage`: of a job, a scenario or a run. Only `add` and `merge` change it."""

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
        """Add one successful call."""
        sent, received, prompt, completion, told_prompt, told_completion, told_cached, told_cost, label = turn
        self.turns += 1
        self.bytes_sent += sent
        self.bytes_received += received
        self.measured_prompt += prompt
        self.measured_completion += completion
        if told_prompt is not None:
            self.reported_prompt = (self.reported_prompt or 0) + told_prompt
        if told_completion is not None:
            self.reported_completion = (self.reported_completion or 0) + told_completion
        if told_cached is not None:
            self.reported_cached = (self.reported_cached or 0) + told_cached
        if told_cost is not None:
            self.reported_cost = (self.reported_cost or 0.0) + told_cost
        if label not in self._labels:
            self._labels = (*self._labels, label)

    def merge(self, other: UsageTotals) -> None:
        """Add all calls of `other`."""
        self.turns += other.turns
        self.bytes_sent += other.bytes_sent
        self.bytes_received += other.bytes_received
        self.measured_prompt += other.measured_prompt
        self.measured_completion += other.measured_completion
        self.reported_prompt = _sum_reported(self.reported_prompt, other.reported_prompt)
        self.reported_completion = _sum_reported(self.reported_completion, other.reported_completion)
        self.reported_cached = _sum_reported(self.reported_cached, other.reported_cached)
        if other.reported_cost is not None:
            self.reported_cost = (self.reported_cost or 0.0) + other.reported_cost
        self._labels += tuple(label for label in other._labels if label not in self._labels)

    def copy(self) -> UsageTotals:
        """Return an independent copy."""
        same = UsageTotals()
        same.merge(self)
        return same

    @property
    def approx_tokens(self) -> int:
        """STATEK's estimate, which the harness compares with its token budget."""
        return approx_tokens(self.bytes_sent, self.bytes_received)

    @property
    def measured_tokens(self) -> int:
        """Prompts and completions, counted with a tokenizer."""
        return self.measured_prompt + self.measured_completion

    @property
    def reported_tokens(self) -> int | None:
        """Prompts and completions as the provider reported them; None if it never did."""
        return _sum_reported(self.reported_prompt, self.reported_completion)

    @property
    def tokenizer(self) -> str:
        """The labels of all tokenizers used, sorted and joined with ` + `."""
        return " + ".join(sorted(self._labels)) or NO_TOKENIZER

    def as_dict(self) -> dict[str, JSON]:
        """Return the usage for reports and traces."""
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
        """Return the key by which totals are compared; the order of tokenizers does not matter."""
        return (
            self.turns,
            self.reported_prompt,
            self.reported_completion,
            self.reported_cached,
            self.reported_cost,
            self.as_dict(),
        )


def _sum_reported(left: int | None, right: int | None) -> int | None:
    """Return the sum of reported values; None if neither was reported."""
    if left is None:
        return right
    return left if right is None else left + right
