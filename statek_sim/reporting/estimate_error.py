"""Why STATEK's estimate of a run is off, in one sentence: the steps of its waterfall, the largest first.

Only calls that were answered are in it: STATEK meters no others (behaviour 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from statek_sim.analysis.run_usage import scenario_use
from statek_sim.backends.record import RunRecord, UsageRecord
from statek_sim.reporting.text_format import plural, share, signed
from statek_sim.suite.result import ScenarioResult
from statek_sim.trace import LLMRequested
from statek_sim.usage.breakdown import Waterfall
from statek_sim.usage.totals import BYTES_PER_TOKEN

_WORDS: Final = {
    "escaping": r"\uXXXX escapes",
    "envelope": "the JSON envelope",
    "tools": "tool definitions",
    "response": "the response envelope",
    "density": "tokenizer density",
}
"""The steps from the estimate to the measured tokens, as a sentence names them."""

MOST_CHARACTERS: Final = 1_000_000
"""Characters of a run's messages that are measured again, step by step: of more only the totals are told."""

_WORTH_NAMING: Final = 0.15
"""Share of the difference from which a cause is named."""

_CAUSES: Final = 3
"""Causes named at most."""

_WORTH_COUNTERING: Final = 0.25
"""Share of the difference from which the largest cause in the other direction is named."""

_MOSTLY_RESENT: Final = 0.5
"""Share of the estimate from which the repeated history is mentioned."""


class Reason(NamedTuple):
    """Why an estimate is off: the name of the largest cause, and one sentence."""

    cause: str
    sentence: str


class _Cause(NamedTuple):
    """Something that makes the estimate too high (positive tokens) or too low."""

    name: str
    tokens: float
    words: str


def reason(result: ScenarioResult) -> Reason:
    """Return what makes the difference between estimate and tokenizer; needs usage of both kinds.

    Signed numbers in the sentence are tokens that a part of the requests and replies adds to the estimate
    beyond what the tokenizer counts in it.
    """
    usage = result.record.usage
    steps = _steps(result)
    gap = usage.approx_tokens - usage.measured_tokens
    sign = 1 if gap >= 0 else -1
    causes = sorted(
        _totals(usage) if steps is None else _of_steps(steps),
        key=lambda cause: (-sign * cause.tokens, cause.name),
    )
    history = "" if steps is None else _history(steps)
    return Reason(causes[0].name, f"{_difference(causes, gap, sign)}{history}.")


def _steps(result: ScenarioResult) -> Waterfall | None:
    """Return the waterfall of a run.

    None where its calls are not known (another backend ran it), where a user's own tokenizer measured it, or where it
    said more than `MOST_CHARACTERS`.
    """
    if _characters(result.record) > MOST_CHARACTERS:
        return None
    use = scenario_use(result).use
    usage = result.record.usage
    steps = use.waterfall
    same = (steps.estimate, steps.measured) == (usage.approx_tokens, usage.measured_tokens)
    return steps if same and use.tokenizer == usage.tokenizer else None


def _characters(record: RunRecord) -> int:
    return sum(
        len(str(message.get("content")))
        for event in record.events
        if isinstance(event, LLMRequested)
        for message in event.new
    )


def _difference(ranked: Sequence[_Cause], gap: int, sign: int) -> str:
    """Name the largest causes of the gap, and what works against them."""
    named = [cause for cause in ranked[:_CAUSES] if sign * cause.tokens > max(_WORTH_NAMING * abs(gap), 0.5)]
    if not named:
        return "no part of it stands out"
    sentence = ", ".join(f"{signed(cause.tokens)} from {cause.words}" for cause in named)
    against = ranked[-1]
    if -sign * against.tokens > max(_WORTH_COUNTERING * abs(gap), 0.5):
        sentence += f", against {signed(against.tokens)} from {against.words}"
    return sentence


def _of_steps(steps: Waterfall) -> list[_Cause]:
    """Return the steps that lead from the estimate to the measured tokens."""
    return [_Cause(name, -getattr(steps, name), words) for name, words in _WORDS.items()]


def _history(steps: Waterfall) -> str:
    """Say how much of the conversation was sent again; both columns count it, so it changes sizes, not ratios."""
    if steps.history < _MOSTLY_RESENT * steps.estimate:
        return ""
    return f"; {share(steps.history, steps.estimate)} of the estimate is history sent again"


def _totals(usage: UsageRecord) -> list[_Cause]:
    """Return what totals alone show: requests against replies."""
    return [
        _body("requests", usage.bytes_sent, usage.measured_prompt),
        _body("replies", usage.bytes_received, usage.measured_completion),
    ]


def _body(what: str, size: int, tokens: int) -> _Cause:
    words = f"{plural(size, 'byte')} of {what} for {plural(tokens, 'token')}"
    return _Cause(what, size / BYTES_PER_TOKEN - tokens, words)
