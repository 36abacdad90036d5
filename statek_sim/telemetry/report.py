"""Rates metrics as healthy, a warning or an alert: for all tasks, for each group and run, and over time.

All default limits are in this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from itertools import combinations
from statistics import median
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.telemetry.facts import TaskFacts
from statek_sim.telemetry.measures import METRICS, Measure, Measured, MetricName, measure
from statek_sim.values import JSON, record

WINDOW: Final = 20
"""The default number of tasks per window."""

_BEFORE: Final = 5
_LEAST_BEFORE: Final = 3
_TREND: Final = 6
_LEAST_TREND: Final = 4


class Status(StrEnum):
    """The verdict on a metric's value. `unknown` means no data; `tracked` means that the metric has no alert."""

    HEALTHY = "healthy"
    WARN = "warn"
    ALERT = "alert"
    UNKNOWN = "unknown"
    TRACKED = "tracked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Limits for warnings and alerts; the defaults come from section 7 of the harness document.

    Fractions are from 0 to 1; rises are relative to earlier values. `value_per_task` is the value of a completed task
    in US dollars; if None, costs are not rated.
    """

    steps_warn: float = 0.25
    steps_alert: float = 0.50
    errors_warn: float = 0.05
    errors_alert: float = 0.10
    loops_alert: int = 0
    trend_warn: float = 0.70
    trend_alert: float = 0.80
    """The fraction of pairs among the last six windows in which the later window has a higher value."""
    rise_in_all: float = 0.10
    completion_warn: float = 0.95
    completion_alert: float = 0.90
    cost_warn: float = 0.80
    """The fraction of `value_per_task` above which there is a warning."""
    value_per_task: Decimal | None = None

    def __post_init__(self) -> None:
        pairs = (
            ("steps", self.steps_warn, self.steps_alert),
            ("errors", self.errors_warn, self.errors_alert),
            ("trend", self.trend_warn, self.trend_alert),
            ("completion", -self.completion_warn, -self.completion_alert),
        )
        for name, warn, alert in pairs:
            if warn > alert:
                raise BadInput(
                    f"{name}: the warning limit is beyond the alert limit; expected the warning first, or equal limits"
                )
        if self.value_per_task is not None and self.value_per_task <= 0:
            raise BadInput(f"expected value_per_task above 0 US dollars, got {self.value_per_task}")


BANDS: Final = Bands()


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict on a metric's value, and the reason for it."""

    status: Status
    why: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The metrics of tasks `first` to `last`, counted from 1, with a verdict on each metric."""

    first: int
    last: int
    measured: Measured
    findings: Mapping[MetricName, Finding] = field(default_factory=dict)


def judged(tasks: Sequence[TaskFacts], *, size: int = WINDOW, bands: Bands = BANDS) -> list[Window]:
    """Return consecutive windows of `size` tasks, in the given order, with a verdict on every metric.

    A remainder of less than half a window is added to the last window.
    """
    if size < 1:
        raise BadInput(f"expected a window of at least 1 task, got {size}")
    found: list[Window] = []
    for first, last in _bounds(len(tasks), size):
        measured = measure(tasks[first:last])
        found.append(Window(first + 1, last, measured, _findings(measured, found, bands)))
    return found


def _bounds(count: int, size: int) -> list[tuple[int, int]]:
    starts = list(range(0, count, size)) or [0]
    if len(starts) > 1 and 2 * (count - starts[-1]) < size:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


def _findings(now: Measured, before: Sequence[Window], bands: Bands) -> dict[MetricName, Finding]:
    found = {name: Finding(Status.TRACKED) for name in METRICS}
    found["steps_per_task"] = _increase("steps_per_task", now, before, bands)
    found["tool_error_rate"] = _share(
        now.metrics["tool_error_rate"], bands.errors_warn, bands.errors_alert, high_is_bad=True
    )
    found["loop_detections"] = _loops(now.metrics["loop_detections"], bands)
    found["tokens_per_subtask"] = _trend("tokens_per_subtask", now, before, bands)
    found["completion_rate"] = _share(
        now.metrics["completion_rate"],
        bands.completion_warn,
        bands.completion_alert,
        high_is_bad=False,
    )
    found["cost_per_task"] = _cost(now.metrics["cost_per_task"], bands)
    for name, measured in now.metrics.items():
        if measured.why:
            found[name] = Finding(Status.UNKNOWN, f"not measured: {measured.why}")
    return found


_NOTHING: Final = Finding(Status.UNKNOWN, "nothing to measure")


def _graded(why: str, *, alert: bool, warn: bool) -> Finding:
    if alert:
        return Finding(Status.ALERT, why)
    return Finding(Status.WARN, why) if warn else Finding(Status.HEALTHY)


def _share(measure: Measure, warn: float, alert: float, *, high_is_bad: bool) -> Finding:
    value = measure.value
    if value is None:
        return _NOTHING
    sign = 1 if high_is_bad else -1
    beyond = sign * value > sign * alert
    if measure.interval is not None:
        # Few tasks prove little: the whole interval has to be outside the healthy range.
        near = measure.interval[0 if high_is_bad else 1]
        beyond = beyond and sign * near > sign * warn
    side = "above" if high_is_bad else "below"
    limit = alert if beyond else warn
    why = f"{measure.part:g} of {measure.whole} is {100 * value:.1f} %, {side} {100 * limit:g} %"
    return _graded(why, alert=beyond, warn=sign * value > sign * warn)


def _loops(measure: Measure, bands: Bands) -> Finding:
    if measure.value is None:
        return _NOTHING
    if measure.value > bands.loops_alert:
        return Finding(Status.ALERT, f"{measure.value:g} detected")
    return Finding(Status.HEALTHY)


def _increase(name: MetricName, now: Measured, before: Sequence[Window], bands: Bands) -> Finding:
    value = now.metrics[name].value
    if value is None:
        return _NOTHING
    known = [
        (window.measured.metrics[name].value or 0.0, window.findings[name].status)
        for window in before
        if window.measured.metrics[name].value is not None
    ]
    calm = [seen for seen, status in known if status is not Status.ALERT][-_BEFORE:]
    usual = median(calm) if len(calm) >= _LEAST_BEFORE else None
    if not usual:
        return Finding(Status.UNKNOWN, "no earlier windows to compare with")
    rise = value / usual - 1
    why = f"{value:.2f} is {100 * rise:.0f} % more than {usual:.2f}"
    return _graded(why, alert=rise > bands.steps_alert, warn=rise > bands.steps_warn)


def _trend(name: MetricName, now: Measured, before: Sequence[Window], bands: Bands) -> Finding:
    value = now.metrics[name].value
    if value is None:
        return _NOTHING
    values = [*(window.measured.metrics[name].value for window in before), value]
    if len(values) == 1:
        return Finding(Status.UNKNOWN, "no earlier windows to compare with")
    known = [one for one in values if one is not None][-_TREND:]
    if len(known) < _LEAST_TREND:
        return Finding(Status.UNKNOWN, f"{len(known)} windows; a trend needs {_LEAST_TREND}")
    half = len(known) // 2
    began = median(known[:half])
    grown = median(known[-half:]) / began - 1 if began else 0.0
    up = _rising(known)
    why = f"{100 * up:.0f} % of the pairs of the last {len(known)} windows rise, {100 * grown:.0f} % in all"
    enough = grown >= bands.rise_in_all
    # A few windows show a trend only if each is higher than all before.
    alert = bands.trend_alert if len(known) == _TREND else 1.0
    return _graded(why, alert=up >= alert and enough, warn=up >= bands.trend_warn and enough)


def _rising(values: Sequence[float]) -> float:
    """Return the fraction of all pairs in which the later value is higher (Mann and Kendall's trend)."""
    pairs = list(combinations(values, 2))
    return sum(later > earlier for earlier, later in pairs) / len(pairs)


def _cost(measure: Measure, bands: Bands) -> Finding:
    value, worth = measure.value, bands.value_per_task
    if value is None:
        return _NOTHING
    if worth is None:
        return Finding(Status.UNKNOWN, "no value per task is given")
    limit = float(worth)
    beyond = value > limit
    over = limit if beyond else bands.cost_warn * limit
    why = f"${value:.4f} is more than ${over:.4f}"
    return _graded(why, alert=beyond, warn=value > bands.cost_warn * limit)


SCHEMA: Final = "statek-sim/metrics@1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReport:
    """Metrics and verdicts for all tasks, for each group and run (keyed by name), and for windows of `size` tasks."""

    size: int
    everything: Window
    groups: tuple[tuple[str, Window], ...]
    runs: tuple[tuple[str, Window], ...]
    windows: tuple[Window, ...]

    @property
    def alerts(self) -> tuple[str, ...]:
        """One line for each alert in a group or a window."""
        return (
            *(line for name, window in self.groups for line in _alerts(name, window)),
            *(
                line
                for window in self.windows
                for line in _alerts(f"tasks {window.first}-{window.last}", window)
            ),
        )


def metrics_report(tasks: Sequence[TaskFacts], *, size: int = WINDOW, bands: Bands = BANDS) -> MetricsReport:
    """Return the metrics and verdicts for `tasks`, which must be ordered by time."""
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
    """Convert the report to JSON. Unknown and non-finite values are null."""
    return {
        "schema": SCHEMA,
        "window": report.size,
        "definitions": [
            record(metric, "name", "title", "formula", "unit", "alerts") for metric in METRICS.values()
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
        **record(measured, "tasks", "completed", "open"),
        "metrics": {name: _metric(found, window.findings[name]) for name, found in measured.metrics.items()},
    }


def _metric(found: Measure, finding: Finding) -> JSON:
    known = found.value is not None and math.isfinite(found.value)
    return {
        "value": found.value if known else None,
        **record(found, "part", "whole", "interval"),
        **record(finding, "status", "why"),
    }
