"""A job's answered calls as curves: its usage so far under each count, and where its token limit stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from statek_sim.backends.record import RunRecord
from statek_sim.backends.setup import harness_for, settings_of
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import limits_in_force
from statek_sim.metering.usage import approx_tokens
from statek_sim.semantics import profile_named
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.run import located_preset
from statek_sim.trace import DifficultyRaised, LLMReplied, LLMRequested, Reactivated
from statek_sim.values import JSON

_KEEPS_CALLS = "reference"
"""The backend whose record says which answers were metered; of others every answer counts."""


@dataclass(slots=True)
class Curve:
    """One job's calls in order, and the token limit after each: None where there is none."""

    calls: list[dict[str, JSON]] = field(default_factory=list)
    limit_line: list[int | None] = field(default_factory=list)


def harness_of(result: ScenarioResult) -> LLM_Harness:
    """Return the harness that the scenario ran under."""
    preset = None if result.preset is None else located_preset(result.preset)
    settings = settings_of(result.scenario, preset=preset)
    return harness_for(result.scenario.limits, settings, profile_named(result.profile))


def curves(result: ScenarioResult, harness: LLM_Harness) -> Mapping[str, Curve]:
    """Return the curve of every job that was answered."""
    readers: dict[str, _Reader] = {}
    grants = profile_named(result.profile).difficulty_extends_tokens
    metered = _metered(result.record)
    for event in result.record.events:
        reader = readers.setdefault(event.job, _Reader(harness, grants=grants))
        match event:
            case LLMRequested():
                reader.bytes_sent = event.bytes_sent
            case LLMReplied() if metered is None or (event.job, event.turn) in metered:
                reader.answer(event)
            case Reactivated():
                reader.completions = event.completions
            case DifficultyRaised():
                reader.raise_difficulty(event.tokens)
            case _:
                pass
    return {name: reader.curve for name, reader in readers.items() if reader.curve.calls}


def _metered(record: RunRecord) -> frozenset[tuple[str, int]] | None:
    """Return the answered calls that count; STATEK meters no answer that it cannot read (behaviour 5)."""
    if record.backend != _KEEPS_CALLS:
        return None
    return frozenset((call.job, call.turn) for call in record.calls)


@dataclass(slots=True)
class _Reader:
    """Follows one job: the sums so far and what its limit depends on."""

    harness: LLM_Harness
    grants: bool
    completions: int | None = None
    granted: int = 0
    bytes_sent: int = 0
    all_bytes: int = 0
    measured: int = 0
    reported: int | None = None
    curve: Curve = field(default_factory=Curve)

    def answer(self, reply: LLMReplied) -> None:
        """Add one answered call."""
        measured = reply.measured_prompt + reply.measured_completion
        reported = _reported(reply)
        self.all_bytes += self.bytes_sent + reply.bytes_received
        self.measured += measured
        if reported is not None:
            self.reported = (self.reported or 0) + reported
        self.curve.calls.append(
            {
                "turn": reply.turn,
                "at": reply.at,
                "bytes_sent": self.bytes_sent,
                "bytes_received": reply.bytes_received,
                "approx": approx_tokens(self.bytes_sent, reply.bytes_received),
                "measured": measured,
                "reported": reported,
                "approx_total": approx_tokens(self.all_bytes, 0),
                "measured_total": self.measured,
                "reported_total": self.reported,
            }
        )
        self.curve.limit_line.append(self._limit())

    def raise_difficulty(self, tokens: int) -> None:
        """Grant what a rise of the difficulty grants, from the check after the step that raised it."""
        if self.grants:
            self.granted += tokens
            if self.curve.limit_line:
                self.curve.limit_line[-1] = self._limit()

    def _limit(self) -> int | None:
        # Counts are whole numbers: they exceed a limit exactly when they exceed its whole part.
        limits = limits_in_force(self.harness.limits, self.completions, self.harness.rule)
        base = limits.max_token_usage
        return None if base is None else math.floor(base) + self.granted


def _reported(reply: LLMReplied) -> int | None:
    if reply.reported_prompt is None and reply.reported_completion is None:
        return None
    return (reply.reported_prompt or 0) + (reply.reported_completion or 0)
