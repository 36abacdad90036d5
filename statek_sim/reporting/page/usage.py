"""The usage of a job on the page: its answered calls as curves with its token limit, and the waterfall as steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from statek_sim.backends import setup
from statek_sim.backends.record import RunRecord
from statek_sim.backends.setup import settings_of
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import limits_in_force
from statek_sim.harness.preset import located_preset
from statek_sim.reporting.text_format import count, plural, share
from statek_sim.semantics import profile_named
from statek_sim.suite.result import ScenarioResult
from statek_sim.trace import DifficultyRaised, LLMReplied, LLMRequested, Reactivated
from statek_sim.usage.breakdown import MEANINGS, STEPS, Waterfall
from statek_sim.usage.totals import TurnUsage, approx_tokens
from statek_sim.values import JSON


@dataclass(slots=True)
class Curve:
    """One job's calls in order, and the token limit after each: None if there is none."""

    calls: list[dict[str, JSON]] = field(default_factory=list)
    limit_line: list[int | None] = field(default_factory=list)


def result_harness(result: ScenarioResult) -> LLM_Harness:
    """Return the harness that the scenario ran under."""
    preset = None if result.preset is None else located_preset(result.preset)
    settings = settings_of(result.scenario, preset=preset)
    return setup.scenario_harness(result.scenario, result.profile, settings, preset=preset)


def curves(result: ScenarioResult, harness: LLM_Harness) -> Mapping[str, Curve]:
    """Return the curve of every job with answers."""
    readers: dict[str, _Reader] = {}
    # A run of engine two has no difficulty, whatever profile it is under.
    grants = result.scenario.engine == "agent" or profile_named(result.profile).difficulty_extends_tokens
    unheard = _unheard(result.record)
    for event in result.record.events:
        reader = readers.setdefault(event.job, _Reader(harness, grants=grants))
        match event:
            case LLMRequested():
                reader.bytes_sent = event.bytes_sent
                if usage := unheard.pop((event.job, event.turn), None):
                    reader.answer(event, usage.bytes_received, usage.measured_tokens, usage.reported_tokens)
            case LLMReplied():
                measured = event.measured_prompt + event.measured_completion
                reader.answer(event, event.bytes_received, measured, _reported(event))
            case Reactivated():
                reader.completions = event.completions
            case DifficultyRaised():
                reader.raise_difficulty(event.tokens)
            case _:
                pass
    return {name: reader.curve for name, reader in readers.items() if reader.curve.calls}


def _unheard(record: RunRecord) -> dict[tuple[str, int], TurnUsage]:
    """Return the usage of answers that the job did not read: a null count ends it (behaviour 5)."""
    heard = {(event.job, event.turn) for event in record.events if isinstance(event, LLMReplied)}
    calls = {(call.job, call.turn): call.usage for call in record.calls}
    return {place: usage for place, usage in calls.items() if place not in heard}


@dataclass(slots=True)
class _Reader:
    """Follows one job: the sums so far and the inputs of its limit."""

    harness: LLM_Harness
    grants: bool
    completions: int | None = None
    granted: int = 0
    bytes_sent: int = 0
    all_bytes: int = 0
    measured: int = 0
    reported: int | None = None
    curve: Curve = field(default_factory=Curve)

    def answer(
        self, event: LLMRequested | LLMReplied, received: int, measured: int, reported: int | None
    ) -> None:
        """Add one answered call: bytes received, and tokens by the tokenizer and by the provider."""
        self.all_bytes += self.bytes_sent + received
        self.measured += measured
        if reported is not None:
            self.reported = (self.reported or 0) + reported
        self.curve.calls.append(
            {
                "turn": event.turn,
                "at": event.at,
                "bytes_sent": self.bytes_sent,
                "bytes_received": received,
                "approx": approx_tokens(self.bytes_sent, received),
                "measured": measured,
                "reported": reported,
                "approx_total": approx_tokens(self.all_bytes, 0),
                "measured_total": self.measured,
                "reported_total": self.reported,
            }
        )
        self.curve.limit_line.append(self._limit())

    def raise_difficulty(self, tokens: int) -> None:
        """Extend the limit for a higher difficulty, from the check after the step that raised it."""
        if self.grants:
            self.granted += tokens
            if self.curve.limit_line:
                self.curve.limit_line[-1] = self._limit()

    def _limit(self) -> int | None:
        # Counts are integers: they exceed a limit exactly if they exceed its integer part.
        limits = limits_in_force(self.harness.limits, self.completions, self.harness.rule)
        base = limits.max_token_usage
        return None if base is None else math.floor(base) + self.granted


def _reported(reply: LLMReplied) -> int | None:
    if reply.reported_prompt is None and reply.reported_completion is None:
        return None
    return (reply.reported_prompt or 0) + (reply.reported_completion or 0)


LABELS: Final = {
    "history": "History sent again",
    "escaping": r"\uXXXX escapes",
    "envelope": "JSON envelope",
    "tools": "Tool definitions",
    "response": "Response envelope",
    "density": "Tokenizer density",
}
"""Short labels of the steps; `MEANINGS` has descriptions."""

_FROM_ESTIMATE = STEPS[1:]
"""The steps from the estimate to the measured tokens; `history` leads to the estimate."""


def waterfall_json(found: Waterfall) -> dict[str, JSON]:
    """Return the steps: `once + history` is `from`, `from` and all `steps` together are `to`. Everything in tokens."""
    members = found._asdict()
    return {
        "once": found.once,
        "history": found.history,
        "from": found.estimate,
        "to": found.measured,
        "steps": [{"name": name, "label": LABELS[name], "tokens": members[name]} for name in _FROM_ESTIMATE],
        "why": why(found),
    }


def why(found: Waterfall) -> str:
    """Return in one sentence how far off the estimate is, and which step contributes most."""
    off = found.estimate - found.measured
    both = f"The harness counts {plural(found.estimate, 'token')}, the model saw {count(found.measured)}"
    if not off:
        return f"{both}."
    members = found._asdict()
    # A step down from the estimate explains an estimate that is too high, and vice versa.
    name = min(_FROM_ESTIMATE, key=lambda step: members[step] if off > 0 else -members[step])
    amount = share(abs(off), found.measured) if found.measured else plural(abs(off), "token")
    side = "high" if off > 0 else "low"
    return (
        f"{both}: {amount} too {side}, above all by {MEANINGS[name]} ({plural(abs(members[name]), 'token')})."
    )
