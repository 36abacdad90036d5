"""What the page knows of all runs before one is opened: the lists, the sums, and what explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from statek_sim.analysis.corpus_model import CELLS, CorpusTable
from statek_sim.reporting.model import Report, Row, Summary
from statek_sim.reporting.page.excerpt import TEXT, excerpt
from statek_sim.reporting.page.usage import waterfall_json
from statek_sim.reporting.report_text import verdict
from statek_sim.suite.result import ScenarioResult
from statek_sim.usage.analysis import Use
from statek_sim.usage.waterfall import MEANINGS
from statek_sim.values import JSON

VERSION: Final = 1
TOLD: Final = 100
"""Failures that the index tells in full."""

BRIEF: Final = 300
"""Characters of each further one: its details have the rest."""


def index_of(
    report: Report,
    results: Sequence[ScenarioResult],
    use: Use | None,
    *,
    corpus: CorpusTable | None,
    gate: Mapping[str, JSON] | None,
    crashes: Mapping[str, JSON] | None,
    metrics: Mapping[str, JSON] | None,
    shown: frozenset[int],
) -> dict[str, JSON]:
    """Return the index in the schema's `index`. `results` are in the order of the report's rows.

    `use` is the usage of all runs together, None when no call can be taken apart. `shown` are the runs whose details
    are on the page. `gate` is what `gate_json` makes of the gate's result,
    `crashes` what `crashes_json` makes of an exploration,
    and `metrics` what `metrics_json` makes of the runs' tasks.
    """
    overall = report.overall
    places = {row.name: n for n, row in enumerate(report.rows)}
    return {
        "version": VERSION,
        "title": f"STATEK scenarios: {verdict(overall)}",
        "digest": report.digest,
        "profiles": list(report.profiles),
        "preset": report.preset,
        "seed": report.seed,
        "totals": {
            "jobs": sum(len(row.jobs) for row in report.rows),
            "turns": sum(row.turns for row in report.rows),
            "bytes_sent": overall.usage.bytes_sent,
            "bytes_received": overall.usage.bytes_received,
            "tokenizer": overall.usage.tokenizer,
            **_counts(overall),
        },
        "suites": [{"name": suite.name, **_counts(suite)} for suite in report.suites],
        "runs": [
            _run(n, row, result, details=n in shown)
            for n, (row, result) in enumerate(zip(report.rows, results, strict=True))
        ],
        "left_out": len(report.rows) - len(shown),
        "meanings": dict(MEANINGS),
        "waterfall": None if use is None else waterfall_json(use.waterfall),
        "corpus": None if corpus is None else _corpus(corpus),
        "gate": None if gate is None else dict(gate),
        "crashes": None if crashes is None else dict(crashes),
        "metrics": None if metrics is None else dict(metrics),
        "failures": [
            {
                "runs": [places[name] for name in failure.runs],
                "text": excerpt(failure.text, TEXT if n < TOLD else BRIEF),
            }
            for n, failure in enumerate(report.failures)
        ],
    }


def _counts(summary: Summary) -> dict[str, JSON]:
    return {
        "runs": summary.total,
        "passed": summary.passed,
        "failed": summary.failed,
        "approx": summary.usage.approx_tokens,
        "measured": summary.usage.measured_tokens,
        "reported": summary.usage.reported_tokens,
    }


def _run(n: int, row: Row, result: ScenarioResult, *, details: bool) -> JSON:
    stops = dict.fromkeys(job.stop for job in row.jobs if job.stop is not None)
    return {
        "n": n,
        "name": row.name,
        "suite": row.suite,
        "id": row.id,
        "title": excerpt(result.scenario.title),
        "profile": row.profile,
        "outcome": str(row.outcome),
        "tags": list(result.scenario.tags),
        "stops": [*stops],
        "jobs": len(row.jobs),
        "turns": row.turns,
        "approx": row.usage.approx_tokens,
        "measured": row.usage.measured_tokens,
        "reported": row.usage.reported_tokens,
        "details": details,
    }


def _corpus(table: CorpusTable) -> JSON:
    return [
        {
            "key": row.key,
            "text": row.name,
            "turns": cell.turns,
            "tools": cell.tools,
            "approx": row.uses[cell].approx_tokens,
            "measured": row.uses[cell].measured_tokens,
            # Rounded: enough for people, and the same digits everywhere.
            "ratio": round(row.ratio(cell), 6),
            "tokenizer": table.tokenizer,
        }
        for row in table.rows
        for cell in CELLS
    ]
