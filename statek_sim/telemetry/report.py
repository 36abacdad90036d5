"""All metrics of some tasks: per run, per group, in total, and over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.telemetry.bands import BANDS, WINDOW, Bands, Finding, Status, Window, judged
from statek_sim.telemetry.facts import TaskFacts
from statek_sim.telemetry.measures import METRICS, Measure
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/metrics@1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReport:
    """The metrics in total, of each group and run by name, and of consecutive windows of `size` tasks."""

    size: int
    everything: Window
    groups: tuple[tuple[str, Window], ...]
    runs: tuple[tuple[str, Window], ...]
    windows: tuple[Window, ...]

    @property
    def alerts(self) -> tuple[str, ...]:
        """Every alert as a line: of the groups, and of the windows."""
        return (
            *(line for name, window in self.groups for line in _alerts(name, window)),
            *(
                line
                for window in self.windows
                for line in _alerts(f"tasks {window.first}-{window.last}", window)
            ),
        )


def metrics_report(tasks: Sequence[TaskFacts], *, size: int = WINDOW, bands: Bands = BANDS) -> MetricsReport:
    """Return the metrics of `tasks`, which are ordered by time."""
    return MetricsReport(
        size=size,
        everything=_whole(tasks, bands),
        groups=tuple(_by((task.group for task in tasks), tasks, bands)),
        runs=tuple(_by((task.run for task in tasks), tasks, bands)),
        windows=tuple(judged(tasks, size=size, bands=bands)),
    )


def _whole(tasks: Sequence[TaskFacts], bands: Bands) -> Window:
    return judged(tasks, size=len(tasks) or 1, bands=bands)[0]


def _by(names: Iterable[str], tasks: Sequence[TaskFacts], bands: Bands) -> Iterator[tuple[str, Window]]:
    members: dict[str, list[TaskFacts]] = {}
    for name, task in zip(names, tasks, strict=True):
        members.setdefault(name, []).append(task)
    for name, found in members.items():
        yield name, _whole(found, bands)


def _alerts(name: str, window: Window) -> Iterator[str]:
    for metric, finding in window.findings.items():
        if finding.status is Status.ALERT:
            yield f"{name}: {METRICS[metric].title}: {finding.why}"


# -- as data ----------------------------------------------------------------------------------------------------


def metrics_json(report: MetricsReport) -> dict[str, JSON]:
    """Return the report as JSON. Unknown and non-finite values are null."""
    return {
        "schema": SCHEMA,
        "window": report.size,
        "definitions": [
            {
                "name": metric.name,
                "title": metric.title,
                "formula": metric.formula,
                "unit": metric.unit,
                "alerts": metric.alerts,
            }
            for metric in METRICS.values()
        ],
        "all": _window(report.everything),
        "groups": [{"name": name, **_window(window)} for name, window in report.groups],
        "runs": [{"name": name, **_window(window)} for name, window in report.runs],
        "windows": [
            {"first": window.first, "last": window.last, **_window(window)} for window in report.windows
        ],
    }


def _window(window: Window) -> dict[str, JSON]:
    measured = window.measured
    return {
        "tasks": measured.tasks,
        "completed": measured.completed,
        "open": measured.open,
        "metrics": {name: _metric(found, window.findings[name]) for name, found in measured.metrics.items()},
    }


def _metric(found: Measure, finding: Finding) -> JSON:
    known = found.value is not None and math.isfinite(found.value)
    return {
        "value": found.value if known else None,
        "part": found.part,
        "whole": found.whole,
        "interval": None if found.interval is None else list(found.interval),
        "status": finding.status.value,
        "why": finding.why,
    }


_UNITS: Final = {"share": "ratio", "dollars": "dollars", "seconds": "seconds"}
"""The format's unit suffixes of names, by our units."""

_GRADES: Final = {Status.HEALTHY: 0, Status.WARN: 1, Status.ALERT: 2}


def openmetrics(report: MetricsReport) -> str:
    """Return the metrics of each group, with the label `group`; unknown ones have no sample."""
    return "\n".join([*_lines(report), "# EOF", ""])


def _lines(report: MetricsReport) -> Iterator[str]:
    yield from _tasks(report)
    for name, metric in METRICS.items():
        unit = _UNITS.get(metric.unit, "")
        family = f"statek_{name}_{unit}" if unit else f"statek_{name}"
        yield f"# TYPE {family} gauge"
        if unit:
            yield f"# UNIT {family} {unit}"
        yield f"# HELP {family} {_escaped(f'{metric.title}: {metric.formula}')}."
        for group, window in report.groups:
            value = window.measured.metrics[name].value
            if value is not None and math.isfinite(value):
                yield f"{family}{_labels(group=group)} {value!r}"
    yield from _statuses(report)


def _tasks(report: MetricsReport) -> Iterator[str]:
    yield "# TYPE statek_tasks gauge"
    yield "# HELP statek_tasks Tasks by how they ended."
    for group, window in report.groups:
        found = window.measured
        failed = found.tasks - found.completed
        for outcome, count in (("completed", found.completed), ("failed", failed), ("open", found.open)):
            yield f"statek_tasks{_labels(group=group, outcome=outcome)} {count}"


def _statuses(report: MetricsReport) -> Iterator[str]:
    yield "# TYPE statek_metric_status gauge"
    yield "# HELP statek_metric_status 0 healthy, 1 warning, 2 alert."
    for group, window in report.groups:
        for name, finding in window.findings.items():
            if finding.status in _GRADES:
                yield f"statek_metric_status{_labels(group=group, metric=name)} {_GRADES[finding.status]}"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
