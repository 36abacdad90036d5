"""A comparison as JSON, for programs that decide on an upgrade."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.compare.changes import Change, Resized, Stop
from statek_sim.compare.document import told
from statek_sim.compare.matrix import Verdict, VersionMatrix
from statek_sim.compare.upgrade import Rule, Section, Upgrade
from statek_sim.values import JSON, as_json, record

SCHEMA = "statek-sim/compare@1"


def comparison_json(
    upgrade: Upgrade | None,
    packages: Sequence[VersionMatrix],
) -> dict[str, JSON]:
    """Return the changes between the sides, and how each release's package compares with the reference runtime."""
    return {
        "schema": SCHEMA,
        "upgrade": None if upgrade is None else _upgrade(upgrade),
        "versions": {matrix.version: _version(matrix) for matrix in packages},
    }


def _version(matrix: VersionMatrix) -> JSON:
    return {
        "scenarios": len(matrix.rows),
        "agree": matrix.count(Verdict.AGREE),
        "varies": matrix.count(Verdict.VARIES),
        "differ": matrix.count(Verdict.DIFFERS),
        # The column of the matrix.
        "verdicts": {row.scenario: str(row.verdict) for row in matrix.rows},
    }


def _upgrade(report: Upgrade) -> JSON:
    return {
        "before": record(report.before, "name", "profile"),
        "after": record(report.after, "name", "profile"),
        **record(report, "preset", "scenarios", "changed", "resized", "answers"),
        "subjects": [_section(section) for section in report.sections],
        "unseen_rules": [_rule(rule) for rule in report.unseen],
    }


def _section(section: Section) -> JSON:
    return {
        "subject": section.subject,
        "rules": [_rule(rule) for rule in section.rules],
        "jobs_under_preset": as_json(section.stop_counts()),
        "changes": [_change(change) for change in section.changes],
        "resized": [_resized(resized) for resized in section.resized],
        "stops": [_stop(stop) for stop in section.stops],
    }


def _rule(rule: Rule) -> JSON:
    return {**record(rule, "name", "before", "after"), "says": rule.doc}


def _found(found: Change | Resized | Stop) -> dict[str, JSON]:
    """Return the scenario of a finding, and its causes."""
    return {"suite": found.scenario.suite, "scenario": found.scenario.id, **record(found, "causes")}


def _change(change: Change) -> JSON:
    return {
        **_found(change),
        "title": change.scenario.title,
        "told": [record(aspect, "about", "before", "after") for aspect in told(change)],
        "differences": [
            {"field": difference.field, "before": difference.reference, "after": difference.installed}
            for difference in change.differences
        ],
    }


def _resized(resized: Resized) -> JSON:
    return {**_found(resized), "bytes_before": resized.before, "bytes_after": resized.after}


def _stop(stop: Stop) -> JSON:
    return {
        **_found(stop),
        **record(stop, "job", "kind"),
        "before": {"end": stop.before or None, "llm_calls": stop.calls_before},
        "after": {"end": stop.after or None, "llm_calls": stop.calls_after},
    }
