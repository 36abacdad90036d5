"""The metrics as OpenMetrics text, for Prometheus and what reads its format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from statek_sim.agent.telemetry.bands import Status, Window
from statek_sim.agent.telemetry.measures import METRICS, MetricName
from statek_sim.agent.telemetry.report import MetricsReport

_UNITS: Final[dict[MetricName, str]] = {
    "steps_per_task": "",
    "tool_error_rate": "ratio",
    "loop_detections": "",
    "tokens_per_subtask": "",
    "completion_rate": "ratio",
    "cost_per_task": "dollars",
    "escalation_rate": "ratio",
    "checkpoint_restores": "",
    "guard_blocks_per_task": "",
    "step_latency_p95": "seconds",
}
"""Units as the format wants them: a suffix of the name."""

_GRADES: Final = {Status.HEALTHY: 0, Status.WARN: 1, Status.ALERT: 2}


def openmetrics(report: MetricsReport) -> str:
    """Return the metrics of each group, with the label `group`; what is unknown has no sample."""
    return "\n".join([*_lines(report), "# EOF", ""])


def _lines(report: MetricsReport) -> Iterator[str]:
    yield from _tasks(report)
    for name, metric in METRICS.items():
        unit = _UNITS[name]
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
        for outcome, count in _outcomes(found.tasks, found.completed, found.open):
            yield f"statek_tasks{_labels(group=group, outcome=outcome)} {count}"


def _outcomes(ended: int, completed: int, still_open: int) -> Iterator[tuple[str, int]]:
    yield "completed", completed
    yield "failed", ended - completed
    yield "open", still_open


def _statuses(report: MetricsReport) -> Iterator[str]:
    yield "# TYPE statek_metric_status gauge"
    yield "# HELP statek_metric_status 0 healthy, 1 warning, 2 alert."
    for group, window in report.groups:
        yield from _status(group, window)


def _status(group: str, window: Window) -> Iterator[str]:
    for name, finding in window.findings.items():
        if finding.status in _GRADES:
            yield f"statek_metric_status{_labels(group=group, metric=name)} {_GRADES[finding.status]}"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
