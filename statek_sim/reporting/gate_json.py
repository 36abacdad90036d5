"""The gate's result for machines: the schema `statek-sim/gate@1`."""

from __future__ import annotations

import json
from typing import Final

from statek_sim.gate.verdict import (
    Burnt,
    CrashAdded,
    CrashPlace,
    GateResult,
    JudgedPreset,
    LimitFigure,
    Remark,
    Stop,
    Verdict,
)
from statek_sim.reporting.published import schema_named
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/gate@1"
VERSION: Final = 1


def gate_json(result: GateResult) -> dict[str, JSON]:
    """Return the result in the schema that `gate_schema` describes. Equal results give equal objects."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "profile": result.profile,
        "policies": {preset.name: preset.policy.as_posix() for preset in result.presets},
        "baselines": {name: path.as_posix() for name, path in result.baselines},
        "presets": [_preset(preset, result) for preset in result.presets],
        "verdicts": [_verdict(verdict) for verdict in result.verdicts],
        "remarks": [_remark(remark) for remark in result.remarks],
        "passed": result.passed,
    }


def gate_json_text(result: GateResult) -> str:
    """Return the result as the text of a file."""
    return json.dumps(gate_json(result), indent=2, allow_nan=False) + "\n"


def gate_schema() -> dict[str, JSON]:
    """Return the JSON Schema of the document."""
    return schema_named("gate")


def _preset(preset: JudgedPreset, result: GateResult) -> JSON:
    own = [verdict for verdict in result.verdicts if verdict.preset == preset.name]
    return {
        "name": preset.name,
        "path": preset.path.as_posix(),
        "sets": [limit.value for limit in preset.stated],
        "limits": {limit.value: value for limit, value in preset.limits},
        "limit_extension_per_completion": preset.extension,
        "verdicts": len(own),
        "failed": sum(not verdict.passed for verdict in own),
    }


def _verdict(verdict: Verdict) -> JSON:
    return {
        "preset": verdict.preset,
        "scenario": verdict.scenario,
        "tags": list(verdict.tags),
        "rule": verdict.rule,
        "passed": verdict.passed,
        "reason": verdict.reason,
        "path": verdict.place.path.as_posix(),
        "line": verdict.place.line,
        "limit": None if verdict.limit is None else verdict.limit.value,
        "stop": _stop(verdict.stop),
        "figures": [_figure(figure) for figure in verdict.figures],
        "burnt": _burnt(verdict.burnt),
        "leaked": list(verdict.leaked),
        "crash": _crash(verdict.crash),
    }


def _stop(stop: Stop | None) -> JSON:
    return None if stop is None else {"job": stop.job, "limit": stop.limit.value, "turn": stop.turn}


def _figure(figure: LimitFigure) -> JSON:
    return {
        "limit": figure.limit.value,
        "value": figure.value,
        "used": figure.used,
        "needed": figure.needed,
        "headroom_percent": figure.headroom_percent,
        "stated": figure.stated,
    }


def _burnt(burnt: Burnt | None) -> JSON:
    if burnt is None:
        return None
    # Text: a float would round money.
    cost = None if burnt.cost is None else f"{burnt.cost:f}"
    return {"turns": burnt.turns, "tokens": burnt.tokens, "cost": cost}


def _crash(crash: CrashAdded | None) -> JSON:
    if crash is None:
        return None
    return {
        "places": crash.places,
        "unknown": crash.unknown,
        "tokens": crash.tokens,
        "tokens_at": _place(crash.tokens_at),
        "cost": None if crash.cost is None else f"{crash.cost:f}",
        "cost_at": _place(crash.cost_at),
    }


def _place(place: CrashPlace) -> JSON:
    return {"event": place.event, "silent": place.silent, "what": place.what}


def _remark(remark: Remark) -> JSON:
    return {
        "preset": remark.preset,
        "path": remark.place.path.as_posix(),
        "line": remark.place.line,
        "message": remark.message,
    }
