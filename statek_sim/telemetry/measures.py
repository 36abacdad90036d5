"""Computes the metrics in section 7 of the harness document for any set of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Final, Literal

from statek_sim.intervals import wilson
from statek_sim.telemetry.facts import TaskFacts

MetricName = Literal[
    "steps_per_task",
    "tool_error_rate",
    "loop_detections",
    "tokens_per_subtask",
    "completion_rate",
    "cost_per_task",
    "escalation_rate",
    "checkpoint_restores",
    "guard_blocks_per_task",
    "step_latency_p95",
]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value. `value` is None if it is unknown, or if the formula divides 0 by 0.

    `value` is `part / whole`, except for the percentile, where `whole` is the number of steps. `interval` is a 95 %
    Wilson interval, for fractions only. `why` is the reason why a value was not measured, otherwise empty.
    """

    value: float | None
    part: float
    whole: int
    interval: tuple[float, float] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """Metrics for a set of tasks, with the number of finished (`tasks`), `completed` and unfinished (`open`) tasks."""

    tasks: int
    completed: int
    open: int
    metrics: Mapping[MetricName, Measure]


Tasks = Sequence[TaskFacts]
Formula = Callable[[Tasks, Tasks], Measure]
"""Takes all tasks and the finished tasks, and returns the measure."""


def _known(tasks: Tasks, fact: str) -> float | None:
    """Return the sum of a field over tasks, or None if it is unknown for any task."""
    values = [getattr(task, fact) for task in tasks]
    return None if None in values else float(sum(map(Decimal, values), Decimal(0)))


def _ratio(part: float | None, whole: float | None) -> Measure:
    if part is None or whole is None:
        return Measure(None, part or 0.0, int(whole or 0))
    return Measure(part / whole if whole else None, part, int(whole))


def _share(part: float | None, whole: float | None) -> Measure:
    found = _ratio(part, whole)
    if found.value is None or not found.whole:
        return found
    return replace(found, interval=wilson(round(found.part), found.whole))


def _per_task(fact: str) -> Formula:
    return lambda _, ended: _ratio(_known(ended, fact), len(ended))


def _count(fact: str) -> Formula:
    return lambda every, _: Measure(known := _known(every, fact), known or 0.0, 1)


def _completed(_: Tasks, ended: Tasks) -> Measure:
    return _share(sum(task.outcome == "completed" for task in ended), len(ended))


def _escalated(_: Tasks, ended: Tasks) -> Measure:
    known = _known(ended, "escalations")
    return _share(None if known is None else sum(bool(task.escalations) for task in ended), len(ended))


def _p95(_: Tasks, ended: Tasks) -> Measure:
    if any(task.step_seconds is None for task in ended):
        return Measure(None, 0.0, 0)
    took = [
        seconds - waited
        for task in ended
        for seconds, waited in zip(task.step_seconds or (), task.person_seconds or (), strict=True)
    ]
    value = nearest_rank(took, 95)
    return Measure(value, value or 0.0, len(took))


def nearest_rank(values: Iterable[float], percent: int) -> float | None:
    """Return the nearest-rank percentile, or None if there are no values.

    This is the smallest value that is greater than or equal to at least `percent` % of the values.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


@dataclass(frozen=True, slots=True)
class Metric:
    """Defines a metric. `title` is its name in the harness document; `alerts` is whether it can raise alerts.

    `formula` is the formula in words, and `of` the same formula as a function. `facts` names the fields that it needs.
    """

    name: MetricName
    title: str
    unit: str
    alerts: bool
    formula: str
    of: Formula
    facts: tuple[str, ...] = ()


_METRICS: Final = (
    Metric(
        "steps_per_task",
        "Steps per Task",
        "steps",
        True,
        "steps of tasks that ended / tasks that ended",
        _per_task("steps"),
        ("steps",),
    ),
    Metric(
        "tool_error_rate",
        "Tool Error Rate",
        "share",
        True,
        "executed calls that raised, timed out or never returned / executed calls",
        lambda every, _: _share(_known(every, "failed_calls"), _known(every, "calls")),
        ("calls", "failed_calls"),
    ),
    Metric(
        "loop_detections",
        "Loop Detection Count",
        "detections",
        True,
        "loops that loop protection detected, counted each time that it reacts",
        _count("loops"),
        ("loops",),
    ),
    Metric(
        "tokens_per_subtask",
        "Token Efficiency",
        "tokens",
        True,
        "tokens of all tasks / subtasks that they completed",
        lambda every, _: _ratio(_known(every, "tokens"), _known(every, "subtasks")),
        ("tokens", "subtasks"),
    ),
    Metric(
        "completion_rate",
        "Task Completion Rate",
        "share",
        True,
        "tasks completed / tasks that ended",
        _completed,
    ),
    Metric(
        "cost_per_task",
        "Cost per Task",
        "dollars",
        True,
        "cost of tasks that ended / tasks that ended",
        _per_task("cost"),
        ("cost",),
    ),
    Metric(
        "escalation_rate",
        "Escalation Rate",
        "share",
        False,
        "tasks that were escalated at least once / tasks that ended",
        _escalated,
        ("escalations",),
    ),
    Metric(
        "checkpoint_restores",
        "Checkpoint Restore Count",
        "restores",
        False,
        "runs resumed from a checkpoint",
        _count("restores"),
        ("restores",),
    ),
    Metric(
        "guard_blocks_per_task",
        "Guard Block Rate",
        "blocks",
        False,
        "texts blocked by guards, at all points / tasks that ended",
        _per_task("blocks"),
        ("blocks",),
    ),
    Metric(
        "step_latency_p95",
        "P95 Latency per Step",
        "seconds",
        False,
        "95th percentile (nearest rank) of step latency, excluding time spent waiting for a person",
        _p95,
        ("step_seconds",),
    ),
)
METRICS: Final[Mapping[MetricName, Metric]] = MappingProxyType({metric.name: metric for metric in _METRICS})
"""All ten metrics, keyed by name; the six core metrics come first."""


def measure(tasks: Iterable[TaskFacts]) -> Measured:
    """Return the metrics for `tasks`. Open tasks are included only in metrics that count events, not in averages."""
    every = tuple(tasks)
    ended = [task for task in every if task.outcome != "open"]
    completed = sum(task.outcome == "completed" for task in ended)
    made: dict[MetricName, Measure] = {}
    for name, metric in METRICS.items():
        found = metric.of(every, ended)
        made[name] = found if found.value is not None else replace(found, why=_why(every, metric.facts))
    return Measured(len(ended), completed, len(every) - len(ended), made)


def _why(tasks: Tasks, facts: Sequence[str]) -> str:
    """Return why the first unknown field among these is unknown, or an empty string if all are known."""
    return next((task.unmeasured[fact] for task in tasks for fact in facts if fact in task.unmeasured), "")
