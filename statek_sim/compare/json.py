"""A comparison as JSON, for whatever decides on an upgrade."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.compare.changes import Change, Resized, Stop
from statek_sim.compare.matrix import Verdict, VersionMatrix
from statek_sim.compare.sides import Side
from statek_sim.compare.upgrade import Rule, Section, Upgrade
from statek_sim.compare.wording import told
from statek_sim.values import JSON

SCHEMA = "statek-sim/compare@1"


def comparison_json(
    upgrade: Upgrade | None,
    packages: Sequence[VersionMatrix],
) -> dict[str, JSON]:
    """Return what changes between the sides, and per release how its package compares with the reference runtime."""
    return {
        "schema": SCHEMA,
        "upgrade": None if upgrade is None else _upgrade(upgrade),
        "versions": {matrix.version: _version(matrix) for matrix in packages},
    }


def _version(matrix: VersionMatrix) -> JSON:
    return {
        "scenarios": len(matrix.rows),
        "agree": matrix.count(Verdict.AGREE),
        "declared": matrix.count(Verdict.DECLARED),
        "varies": matrix.count(Verdict.VARIES),
        "differ": matrix.count(Verdict.DIFFERS),
        # The column of the matrix.
        "verdicts": {row.scenario: str(row.verdict) for row in matrix.rows},
    }


def _upgrade(report: Upgrade) -> JSON:
    return {
        "before": _side(report.before),
        "after": _side(report.after),
        "preset": report.preset,
        "scenarios": report.scenarios,
        "changed": report.changed,
        "resized": report.resized,
        "answers": [
            {"question": answer.question, "before": answer.before, "after": answer.after}
            for answer in report.answers
        ],
        "subjects": [_section(section) for section in report.sections],
        "unseen_rules": [_rule(rule) for rule in report.unseen],
    }


def _side(side: Side) -> JSON:
    return {"name": side.name, "profile": side.profile}


def _section(section: Section) -> JSON:
    counts: dict[str, JSON] = dict(section.stop_counts())
    return {
        "subject": section.subject,
        "rules": [_rule(rule) for rule in section.rules],
        "jobs_under_preset": counts,
        "changes": [_change(change) for change in section.changes],
        "resized": [_resized(resized) for resized in section.resized],
        "stops": [_stop(stop) for stop in section.stops],
    }


def _rule(rule: Rule) -> JSON:
    return {"name": rule.name, "before": rule.before, "after": rule.after, "says": rule.doc}


def _change(change: Change) -> JSON:
    return {
        "suite": change.scenario.suite,
        "scenario": change.scenario.id,
        "title": change.scenario.title,
        "causes": list(change.causes),
        "told": [
            {"about": statement.about, "before": statement.before, "after": statement.after}
            for statement in told(change)
        ],
        "differences": [
            {"field": difference.field, "before": difference.reference, "after": difference.installed}
            for difference in change.differences
        ],
    }


def _resized(resized: Resized) -> JSON:
    return {
        "suite": resized.scenario.suite,
        "scenario": resized.scenario.id,
        "causes": list(resized.causes),
        "bytes_before": resized.before,
        "bytes_after": resized.after,
    }


def _stop(stop: Stop) -> JSON:
    return {
        "suite": stop.scenario.suite,
        "scenario": stop.scenario.id,
        "job": stop.job,
        "kind": stop.kind,
        "causes": list(stop.causes),
        "before": {"end": stop.before or None, "llm_calls": stop.calls_before},
        "after": {"end": stop.after or None, "llm_calls": stop.calls_after},
    }
