"""An experiment as JSON: equal results give equal text, whatever the executor."""

from __future__ import annotations

import json
from typing import Any, Final

from statek_sim.evals.models.profile import Profile
from statek_sim.evals.outcome import Count, Tokens
from statek_sim.evals.statistics.comparing import Comparison
from statek_sim.evals.summary import ArmSummary, Summary

SCHEMA: Final = "statek-sim/evals@1"
DIGITS: Final = 6


def evals_json(summary: Summary) -> dict[str, Any]:
    """Return the document."""
    experiment = summary.experiment
    return {
        "schema": SCHEMA,
        "model": experiment.profile.name,
        "rates": rates_json(experiment.profile),
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
        "tests": [_test(one) for one in summary.comparisons],
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


def rates_json(profile: Profile) -> list[dict[str, Any]]:
    """Return every rate with its label: means of classes over scenarios, single rates, shares of kinds of damage."""
    rates = [(one.name, one.mean, str(one.origin)) for one in profile.classes]
    rates += [(one.name, one.rate, str(one.origin)) for one in profile.rates.values()]
    rates += [(name, share, str(profile.damage_origin)) for name, share in profile.damage_shares.items()]
    return [{"class": name, "rate": _rounded(rate), "label": label} for name, rate, label in rates]


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


def _test(one: Comparison) -> dict[str, Any]:
    return {"arms": [one.first, one.second], "p": _rounded(one.p), "enough_runs": one.enough}


def _rounded(number: float) -> float:
    return round(number, DIGITS)


# -- its schema -------------------------------------------------------------------------------------------------

_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_WHOLE: Final = {"type": "integer", "minimum": 0}
_INTERVAL: Final = {
    "type": "array",
    "prefixItems": [_SHARE, _SHARE],
    "minItems": 2,
    "maxItems": 2,
    "description": "95 % of the score, by scenarios (cluster bootstrap).",
}


def _object(properties: dict[str, Any], description: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"description": description, **made} if description else made


def _list(items: dict[str, Any], description: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"type": "array", "items": items}
    return {"description": description, **made} if description else made


def evals_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = {"type": "string"}
    count = _object({"prompt": _WHOLE, "completion": _WHOLE})
    shares = {"type": "object", "additionalProperties": {"type": "number"}}
    cell = _object({"runs": _WHOLE, "completed": _WHOLE, "passed": _WHOLE, "points": _SHARE})
    tokens = _object(
        {"reported": {"anyOf": [count, {"type": "null"}]}, "measured": count, "estimated": count},
        "Of all runs of the arm: as the provider reported them (null: it reports none), counted, estimated of bytes.",
    )
    arm = _object(
        {
            "name": text,
            "parts": _list(text),
            "runs": _WHOLE,
            "completion": {**_SHARE, "description": "The share of runs that ended by an answer."},
            "score": {**_SHARE, "description": "The share of runs that were right."},
            "interval": _INTERVAL,
            "tokens": tokens,
        }
    )
    scenario = _object(
        {
            "id": text,
            "tier": {"enum": ["easy", "medium", "hard"]},
            "capability": text,
            "arms": {"type": "object", "additionalProperties": cell},
        }
    )
    test = _object(
        {
            "arms": {"type": "array", "items": text, "minItems": 2, "maxItems": 2},
            "p": {**_SHARE, "description": "Exact McNemar, paired by scenario and seed, not adjusted."},
            "enough_runs": {
                "type": "boolean",
                "description": "Whether these runs tell: the arms differ (p after Holm at most 0.05), or surely do "
                "not differ by more than 0.05.",
            },
        }
    )
    rate = _object({"class": text, "rate": _SHARE, "label": text})
    made = _object(
        {
            "schema": {"const": SCHEMA},
            "model": text,
            "rates": _list(rate, "Of the simulated model; each label says measured, fitted or assumed."),
            "arms": _list(arm),
            "scenarios": _list(scenario),
            "tests": _list(test),
            "shapley": {
                "description": "What each part is worth of the score and of completion; null unless all sets were run.",
                "anyOf": [_object({"score": shares, "completion": shares}), {"type": "null"}],
            },
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "statek-sim evals run --json",
        **made,
    }
