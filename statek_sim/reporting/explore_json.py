"""An exploration for machines: the schema `statek-sim/exploration@1`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

from statek_sim.explore.result import CrashCost, Exploration, Explored, Failure
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/exploration@1"
VERSION: Final = 1


def exploration_json(exploration: Exploration, seconds: float) -> dict[str, JSON]:
    """Return the result in the schema that `exploration_schema` describes; `seconds` are real ones."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "scenarios": [_scenario(explored) for explored in exploration.scenarios],
        "runs": exploration.runs,
        "seconds": round(seconds, 3),
        "stopped": exploration.stopped,
    }


def exploration_json_text(exploration: Exploration, seconds: float) -> str:
    """Return the result as the text of a file."""
    return json.dumps(exploration_json(exploration, seconds), indent=2, allow_nan=False) + "\n"


def exploration_schema() -> dict[str, JSON]:
    """Return the JSON Schema of the document."""
    text = (
        resources.files("statek_sim.reporting")
        .joinpath("exploration_schema.json")
        .read_text(encoding="utf-8")
    )
    schema: dict[str, JSON] = json.loads(text)
    return schema


def _scenario(explored: Explored) -> JSON:
    beyond = explored.beyond
    return {
        "id": explored.id,
        "suite": explored.suite,
        "profile": explored.profile,
        "points": explored.points,
        "explored": explored.explored,
        "proven": {kind: [count.tried, count.of] for kind, count in explored.proven.items()},
        "beyond": {
            "pairs": [beyond.pairs.tried, beyond.pairs.of],
            "triples": beyond.triples,
            "depth": beyond.depth,
            "probability": beyond.probability,
        },
        "failures": [_failure(failure) for failure in explored.failures],
        "reached": dict(explored.reached),
        "unknown": explored.unknown,
        "repeats": explored.repeats,
        "runs": explored.runs,
        "crash": _crash(explored.crash),
        "tools": [
            {
                "tool": tool.tool,
                "own": tool.own,
                "before": tool.before,
                "during": tool.during,
                "after": tool.after,
                "twice": tool.twice,
                "owners": tool.owners,
            }
            for tool in explored.tools
        ],
        "map": [[cell.event, cell.silent, cell.what, cell.job, cell.came] for cell in explored.cells],
        "problem": explored.problem,
    }


def _failure(failure: Failure) -> JSON:
    return {
        "invariant": failure.invariant,
        "message": failure.message,
        "times": failure.times,
        "deviations": [
            deviation.model_dump(mode="json", exclude_unset=True) for deviation in failure.deviations
        ],
        "file": failure.file,
        "whose": failure.whose,
    }


def _crash(crash: CrashCost) -> JSON:
    return {"tokens": crash.tokens, "cost": crash.cost, "where": crash.where, "cost_where": crash.cost_where}
