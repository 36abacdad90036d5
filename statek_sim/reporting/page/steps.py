"""The waterfall as the page shows it: steps that add up, and the one that matters in a sentence."""

from __future__ import annotations

from typing import Final

from statek_sim.reporting.numbers import count, plural, share
from statek_sim.usage.waterfall import MEANINGS, STEPS, Waterfall
from statek_sim.values import JSON

LABELS: Final = {
    "history": "History sent again",
    "escaping": r"\uXXXX escapes",
    "envelope": "JSON envelope",
    "tools": "Tool definitions",
    "response": "Response envelope",
    "density": "Tokenizer density",
}
"""What stands beside a step; `MEANINGS` say more."""

_FROM_ESTIMATE = STEPS[1:]
"""The steps that lead from the estimate to the measured tokens; `history` leads to the estimate."""


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
    """Return in one sentence how far the estimate is off, and which step contributes most to that."""
    off = found.estimate - found.measured
    both = f"The harness counts {plural(found.estimate, 'token')}, the model saw {count(found.measured)}"
    if not off:
        return f"{both}."
    members = found._asdict()
    # A step down from the estimate explains an estimate that is too high, and the other way round.
    name = min(_FROM_ESTIMATE, key=lambda step: members[step] if off > 0 else -members[step])
    amount = share(abs(off), found.measured) if found.measured else plural(abs(off), "token")
    side = "high" if off > 0 else "low"
    return (
        f"{both}: {amount} too {side}, above all by {MEANINGS[name]} ({plural(abs(members[name]), 'token')})."
    )
