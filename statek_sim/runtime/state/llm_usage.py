"""What a job's LLM calls cost, under STATEK's field names (001, 000; behaviour 5)."""

from __future__ import annotations

from statek_sim.metering.usage import TurnUsage, approx_tokens


class LLM_Usage:  # noqa: N801  # STATEK's own name
    """Running totals of one job and the per-turn figures they come from. Sizes are bytes."""

    __slots__ = (
        "total_bytes_received",
        "total_bytes_sent",
        "total_cached_tokens",
        "total_input_tokens",
        "total_measured_tokens",
        "total_output_tokens",
        "total_reported_cost",
        "turns",
    )

    def __init__(self) -> None:
        self.total_bytes_sent = 0
        self.total_bytes_received = 0
        self.total_input_tokens = 0
        self.total_measured_tokens = 0
        self.total_output_tokens = 0
        self.total_cached_tokens = 0
        self.total_reported_cost: float | None = None
        self.turns: list[TurnUsage] = []

    @property
    def context_bytes(self) -> int:
        """All bytes, both directions."""
        return self.total_bytes_sent + self.total_bytes_received

    @property
    def approx_tokens(self) -> int:
        """The harness's estimate of the totals (000)."""
        return approx_tokens(self.total_bytes_sent, self.total_bytes_received)

    def add(self, turn: TurnUsage) -> None:
        """Add one answered LLM call; failed calls are never added (behaviour 5)."""
        self.total_bytes_sent += turn.bytes_sent
        self.total_bytes_received += turn.bytes_received
        self.total_measured_tokens += turn.measured_prompt + turn.measured_completion
        self.total_input_tokens += turn.reported_prompt or 0
        self.total_output_tokens += turn.reported_completion or 0
        self.total_cached_tokens += turn.reported_cached or 0
        if turn.reported_cost is not None:
            self.total_reported_cost = (self.total_reported_cost or 0.0) + turn.reported_cost
        self.turns.append(turn)
