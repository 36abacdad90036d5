"""Why STATEK's estimate is off: one sentence that says what the numbers of a run show, and no more."""

from __future__ import annotations

from typing import Final, NamedTuple

from statek_sim.backends.record import RunRecord, UsageRecord
from statek_sim.reporting.breakdown import Breakdown, Part, break_down
from statek_sim.reporting.numbers import count, plural, share, signed

_WORTH_NAMING: Final = 0.15
"""Share of the difference from which a cause is named."""

_CAUSES: Final = 3
"""Causes named at most."""

_WORTH_COUNTERING: Final = 0.25
"""Share of the difference from which the largest cause in the other direction is named."""

_MOSTLY_RESENT: Final = 0.5
"""Share of message bytes from which the repeated history is mentioned."""

_DENSE: Final = 0.3
"""Share of digits and punctuation from which a text is called dense."""


class Reason(NamedTuple):
    """Why an estimate is off: the name of the largest cause, and one sentence."""

    cause: str
    sentence: str


class _Cause(NamedTuple):
    """Something that makes the estimate too high (positive tokens) or too low."""

    name: str
    tokens: float
    words: str


def reason(record: RunRecord) -> Reason:
    """Return what makes the difference between estimate and tokenizer; needs usage of both kinds.

    Signed numbers in the sentence are tokens that a part of the requests and replies adds to the estimate
    beyond what the tokenizer counts in it.
    """
    usage = record.usage
    parts = break_down(record)
    gap = usage.approx_tokens - usage.measured_tokens
    sign = 1 if gap >= 0 else -1
    causes = sorted(
        _coarse(usage) if parts is None else _fine(parts),
        key=lambda cause: (-sign * cause.tokens, cause.name),
    )
    sentence = _difference(causes, gap, sign)
    return Reason(causes[0].name, f"{sentence}{'' if parts is None else _history(parts)}.")


def _difference(ranked: list[_Cause], gap: int, sign: int) -> str:
    """Name the largest causes of the gap, and what works against them."""
    named = [cause for cause in ranked[:_CAUSES] if sign * cause.tokens > max(_WORTH_NAMING * abs(gap), 0.5)]
    if not named:
        return "no part of it stands out"
    sentence = ", ".join(f"{signed(cause.tokens)} from {cause.words}" for cause in named)
    against = ranked[-1]
    if -sign * against.tokens > max(_WORTH_COUNTERING * abs(gap), 0.5):
        sentence += f", against {signed(against.tokens)} from {against.words}"
    return sentence


def _fine(parts: Breakdown) -> list[_Cause]:
    """Return the causes that a breakdown shows."""
    tools, replies = parts.tools, parts.replies
    return [
        _Cause("tools", tools.excess, f"tool definitions ({share(tools.bytes, parts.bytes)} of the bytes)"),
        _Cause(
            "escapes",
            parts.escapes.excess,
            f"{plural(parts.non_ascii, 'non-ASCII character')} sent as \\uXXXX",
        ),
        _Cause("framing", parts.framing.excess, f"the JSON around {plural(parts.messages, 'sent message')}"),
        _Cause("text", parts.text.excess, _text(parts)),
        _Cause("replies", replies.excess, _bodies("reply bodies", replies.bytes, replies.tokens)),
    ]


def _text(parts: Breakdown) -> str:
    """Describe the messages' texts by what makes their tokens long or short."""
    words = f"texts of {parts.text.bytes / max(parts.text.tokens, 1):.1f} bytes per token"
    if parts.text.excess < 0 and parts.dense >= _DENSE * max(parts.characters, 1):
        words += f", {share(parts.dense, parts.characters)} digits and punctuation"
    return words


def _history(parts: Breakdown) -> str:
    """Say how much of the conversation was sent again; both columns count it, so it changes sizes, not ratios."""
    if parts.requests < 2 or parts.resent_bytes < _MOSTLY_RESENT * parts.message_bytes:
        return ""
    again = share(parts.resent_bytes, parts.message_bytes)
    return f"; {again} of the message bytes are history sent again in {count(parts.requests)} requests"


def _coarse(usage: UsageRecord) -> list[_Cause]:
    """Return what totals alone show: requests against replies."""
    sent = Part(usage.bytes_sent, usage.measured_prompt)
    received = Part(usage.bytes_received, usage.measured_completion)
    return [
        _Cause("requests", sent.excess, _bodies("requests", sent.bytes, sent.tokens)),
        _Cause("replies", received.excess, _bodies("reply bodies", received.bytes, received.tokens)),
    ]


def _bodies(what: str, size: int, tokens: int) -> str:
    return f"{plural(size, 'byte')} of {what} for {plural(tokens, 'token')}"
