"""The usage analysis for machines: the schema `statek-sim/usage@1`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from statek_sim.analysis.corpus_model import CELLS, CorpusTable
from statek_sim.reporting.artifact import schema_named
from statek_sim.usage.analysis import Cost, Group, JobUse, ScenarioUse, TurnUse, UsageAnalysis, Use
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/usage@1"


def usage_json(analysis: UsageAnalysis, corpus: CorpusTable | None = None) -> dict[str, JSON]:
    """Return the analysis in the schema that `usage_schema` describes. Equal analyses give equal objects.

    `corpus` is the table of an analysis of the corpus.
    """
    table: dict[str, JSON] = {} if corpus is None else {"corpus": _corpus(corpus)}
    return {
        "schema": SCHEMA,
        "preset": analysis.preset,
        "scenarios": [_scenario(scenario) for scenario in analysis.scenarios],
        "suites": [_group(suite) for suite in analysis.suites],
        "overall": _group(analysis.overall),
        "without_calls": list(analysis.silent),
        "price_problems": list(analysis.price_problems),
        **table,
    }


def usage_json_text(analysis: UsageAnalysis, corpus: CorpusTable | None = None) -> str:
    """Return the analysis as the text of a file."""
    return json.dumps(usage_json(analysis, corpus), indent=2, allow_nan=False) + "\n"


def usage_schema() -> dict[str, JSON]:
    """Return the JSON Schema (draft 2020-12) of `usage_json`."""
    return schema_named("usage")


def _corpus(table: CorpusTable) -> JSON:
    return [
        {
            "text": row.key,
            "name": row.name,
            "turns": cell.turns,
            "tools": cell.tools,
            "estimate_ratio": round(row.ratio(cell), 6),
            "character_ratio": round(row.character_ratio(cell), 6),
        }
        for row in table.rows
        for cell in CELLS
    ]


def _scenario(scenario: ScenarioUse) -> JSON:
    return {
        "suite": scenario.suite,
        "id": scenario.id,
        "profile": scenario.profile,
        "tags": list(scenario.tags),
        "jobs": [_job(job) for job in scenario.jobs],
        **use_json(scenario.use),
    }


def _job(job: JobUse) -> JSON:
    turns: list[JSON] = [_turn(turn) for turn in job.turns]
    return {"name": job.name, "agent": job.agent, "stop": job.stop, "turns": turns, **use_json(job.use)}


def _turn(turn: TurnUse) -> JSON:
    return {"turn": turn.turn, "model": turn.model, "provider": turn.provider, **use_json(turn.use)}


def _group(group: Group) -> JSON:
    return {"name": group.name, "scenarios": group.scenarios, **use_json(group.use)}


def use_json(use: Use) -> Mapping[str, JSON]:
    """Return the counts of a turn, a job, a scenario or a group; amounts of money are decimal texts."""
    steps: dict[str, JSON] = dict(use.waterfall._asdict())
    return {
        "calls": use.calls,
        "bytes_sent": use.bytes_sent,
        "bytes_received": use.bytes_received,
        "approx_tokens": use.approx_tokens,
        "character_tokens": use.character_tokens,
        "measured_prompt": use.measured_prompt,
        "measured_completion": use.measured_completion,
        "measured_tokens": use.measured_tokens,
        "tokenizer": use.tokenizer,
        "reported_calls": use.reporting,
        "reported_prompt": use.reported.prompt if use.reporting else None,
        "reported_completion": use.reported.completion if use.reporting else None,
        "reported_cached": use.reported.cached if use.reporting else None,
        "reported_tokens": use.reported_tokens,
        "cost": _cost(use.cost),
        "waterfall": {**steps, "estimate": use.waterfall.estimate, "measured": use.waterfall.measured},
    }


def _cost(cost: Cost) -> JSON:
    return {
        "statek": _amount(cost.statek),
        "billed": _amount(cost.billed),
        "reported": _amount(cost.reported),
        "problems": list(cost.problems),
    }


def _amount(amount: Decimal | None) -> JSON:
    return None if amount is None else f"{amount:f}"
