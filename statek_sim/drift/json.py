"""The report as JSON, for whatever decides on an upgrade."""

from __future__ import annotations

from statek_sim.conformance.matrix import Verdict
from statek_sim.drift.changes import Change, Resized, Stop
from statek_sim.drift.packages import PackageCheck
from statek_sim.drift.report import DriftReport, Rule, Section
from statek_sim.drift.side import Side
from statek_sim.drift.words import told
from statek_sim.values import JSON

SCHEMA = "statek-sim/drift@1"


def drift_json(report: DriftReport) -> dict[str, JSON]:
    """Return everything that the report says, and the raw values of every field that differs."""
    return {
        "schema": SCHEMA,
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
        "packages": [_package(check) for check in report.packages],
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


def _package(check: PackageCheck) -> JSON:
    matrix = check.matrix
    return {
        "version": matrix.version,
        "profile": matrix.profile,
        "python": matrix.python,
        "scenarios": len(matrix.rows),
        **{verdict.value: matrix.count(verdict) for verdict in Verdict},
        "disagree": [
            {
                "scenario": row.scenario,
                "differences": [
                    {
                        "field": difference.field,
                        "profile": difference.reference,
                        "package": difference.installed,
                    }
                    for difference in row.differences
                ],
            }
            for row in check.disagreeing
        ],
    }
