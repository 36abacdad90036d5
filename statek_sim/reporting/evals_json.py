"""An experiment as JSON: equal results give equal text, whatever the executor."""

from __future__ import annotations

import json
from typing import Any, Final

from statek_sim.evals.models.profile import Profile
from statek_sim.evals.outcome import Count, Tokens
from statek_sim.evals.recorded import RecordedModel
from statek_sim.evals.statistics import Comparison
from statek_sim.evals.summary import ArmSummary, Summary
from statek_sim.reporting.published import schema_named

SCHEMA: Final = "statek-sim/evals@1"
DIGITS: Final = 6


def evals_json(summary: Summary) -> dict[str, Any]:
    """Return the document."""
    experiment = summary.experiment
    return {
        "schema": SCHEMA,
        "model": experiment.model.name,
        "rates": rates_json(experiment.model),
        "arms": [_arm(arm) for arm in summary.arms],
        "scenarios": [
            {
                "id": scenario.id,
                "tier": scenario.tier,
                "capability": scenario.capability,
                "arms": {
                    name: {
                        "runs": cell.runs,
                        "completed": cell.completed,
                        "passed": cell.passed,
                        "points": _rounded(cell.points),
                    }
                    for name, cell in summary.cells[scenario.id].items()
                },
            }
            for scenario in experiment.suite
        ],
        "tests": [_test(comparison) for comparison in summary.comparisons],
        "shapley": None
        if summary.shapley is None
        else {
            what: {part: _rounded(share) for part, share in shares.items()}
            for what, shares in summary.shapley.items()
        },
    }


def evals_json_text(summary: Summary) -> str:
    """Return the document as text."""
    return json.dumps(evals_json(summary), indent=2, ensure_ascii=False) + "\n"


def rates_json(profile: Profile | RecordedModel) -> list[dict[str, Any]]:
    """Return every rate, all assumed: means of classes over scenarios, single rates, shares of kinds of damage.

    A recorded model has none: nothing of it is simulated.
    """
    if isinstance(profile, RecordedModel):
        return []
    return [{"class": name, "rate": _rounded(rate)} for name, rate in profile.all_rates.items()]


def _arm(arm: ArmSummary) -> dict[str, Any]:
    return {
        "name": arm.arm.name,
        "parts": list(arm.arm.listed),
        "runs": arm.runs,
        "completion": _rounded(arm.completion),
        "score": _rounded(arm.score),
        "interval": [_rounded(bound) for bound in arm.interval],
        "tokens": _tokens(arm.tokens),
    }


def _tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "reported": None if tokens.reported is None else _count(tokens.reported),
        "measured": _count(tokens.measured),
        "estimated": _count(tokens.estimated),
    }


def _count(count: Count) -> dict[str, int]:
    return {"prompt": count.prompt, "completion": count.completion}


def _test(comparison: Comparison) -> dict[str, Any]:
    return {
        "arms": [comparison.first, comparison.second],
        "p": _rounded(comparison.p),
        "enough_runs": comparison.enough,
    }


def _rounded(number: float) -> float:
    return round(number, DIGITS)


def evals_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    return schema_named("evals")
