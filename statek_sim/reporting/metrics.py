"""Renders a metrics report for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from rich.text import Text

from statek_sim.reporting.table import Rows, Table
from statek_sim.reporting.text_format import plural
from statek_sim.telemetry.measures import METRICS, Measure, MetricName
from statek_sim.telemetry.report import Finding, MetricsReport, Status, Window

_STYLES: Final = {Status.ALERT: "red", Status.WARN: "yellow", Status.HEALTHY: "green"}


def metric_lines(report: MetricsReport, *, width: int) -> Iterator[Text]:
    """Yield the table of all metrics, tables for groups and windows if there are several, and the alerts."""
    whole = report.everything.measured
    still_open = f", {whole.open} not ended" if whole.open else ""
    yield Text(f"{plural(whole.tasks, 'task')}, {whole.completed} completed{still_open}")
    yield Text()
    rows: Rows = [
        [
            METRICS[name].title,
            shown(name, found),
            _of(found),
            _status(report.everything.findings[name], found),
        ]
        for name, found in whole.metrics.items()
    ]
    yield from Table(head=("metric", "value", "of", "is"), rows=rows, left=("is",)).lines(width=width)
    windows = [(f"tasks {window.first}-{window.last}", window) for window in report.windows]
    for first, named in (("group", report.groups), ("over time", windows)):
        if len(named) > 1:
            yield Text()
            table = Table(head=(first, *_SHORT.values()), rows=[*map(_row_of_group, named)])
            yield from table.lines(width=width)
    if report.alerts:
        yield Text()
        yield from (Text(f"alert: {line}", style="red") for line in report.alerts)


_SHORT: Final[dict[MetricName, str]] = {
    "steps_per_task": "steps",
    "tool_error_rate": "errors",
    "loop_detections": "loops",
    "tokens_per_subtask": "tokens",
    "completion_rate": "done",
    "cost_per_task": "cost",
}


def _row_of_group(named: tuple[str, Window]) -> list[str | Text]:
    name, window = named
    cells = [
        Text(
            shown(metric, window.measured.metrics[metric]),
            style=_STYLES.get(window.findings[metric].status, ""),
        )
        for metric in _SHORT
    ]
    return [name, *cells]


def shown(name: MetricName, found: Measure) -> str:
    """Return a metric's value with its unit, or `-` if it is unknown."""
    if found.value is None:
        return "-"
    if not math.isfinite(found.value):
        return "NaN" if math.isnan(found.value) else "inf"
    match METRICS[name].unit:
        case "share":
            return f"{100 * found.value:.1f} %"
        case "dollars":
            return f"${found.value:.4f}"
        case "seconds":
            return f"{found.value:.3g} s"
        case "tokens":
            return f"{found.value:,.0f}"
        case "steps" | "blocks":
            return f"{found.value:.2f}"
        case _:
            return f"{found.value:g}"


def _of(found: Measure) -> str:
    if found.interval is not None:
        low, high = found.interval
        return f"{found.part:g} of {found.whole} ({100 * low:.0f}-{100 * high:.0f} %)"
    return "" if found.value is None or found.whole < 2 else f"{found.whole:,}"


def _status(finding: Finding, found: Measure) -> Text:
    return Text(finding.why if found.why else finding.status.value, style=_STYLES.get(finding.status, ""))
