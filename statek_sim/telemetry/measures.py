"""The metrics of the harness document, section 7, with their formulas, over any set of tasks."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: its title in the document, its formula in words, its unit, and whether it may alert."""

    name: MetricName
    title: str
    formula: str
    unit: str
    alerts: bool


METRICS: Final[Mapping[MetricName, Metric]] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric(
                name="steps_per_task",
                title="Steps per Task",
                formula="steps of tasks that ended / tasks that ended",
                unit="steps",
                alerts=True,
            ),
            Metric(
                name="tool_error_rate",
                title="Tool Error Rate",
                formula="executed calls that raised, timed out or never returned / executed calls",
                unit="share",
                alerts=True,
            ),
            Metric(
                name="loop_detections",
                title="Loop Detection Count",
                formula="detections of loop protection, each answer to a loop one",
                unit="detections",
                alerts=True,
            ),
            Metric(
                name="tokens_per_subtask",
                title="Token Efficiency",
                formula="tokens of all tasks / subtasks completed in them",
                unit="tokens",
                alerts=True,
            ),
            Metric(
                name="completion_rate",
                title="Task Completion Rate",
                formula="tasks completed / tasks that ended",
                unit="share",
                alerts=True,
            ),
            Metric(
                name="cost_per_task",
                title="Cost per Task",
                formula="cost of tasks that ended / tasks that ended",
                unit="dollars",
                alerts=True,
            ),
            Metric(
                name="escalation_rate",
                title="Escalation Rate",
                formula="tasks that went up a level at least once / tasks that ended",
                unit="share",
                alerts=False,
            ),
            Metric(
                name="checkpoint_restores",
                title="Checkpoint Restore Count",
                formula="runs taken up again from a checkpoint",
                unit="restores",
                alerts=False,
            ),
            Metric(
                name="guard_blocks_per_task",
                title="Guard Block Rate",
                formula="texts blocked by guards, at all points / tasks that ended",
                unit="blocks",
                alerts=False,
            ),
            Metric(
                name="step_latency_p95",
                title="P95 Latency per Step",
                formula="95th percentile, nearest rank, of the seconds of steps, less those a person was waited for",
                unit="seconds",
                alerts=False,
            ),
        )
    }
)
"""All ten, the six core ones first."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value; None if it is unknown, also for 0/0.

    It is `part` of `whole`; `interval` is Wilson's 95 % interval of a share; `why` says why it is not measured, empty
    if it is or if there is nothing to measure.
    """

    value: float | None
    part: float
    whole: int
    interval: tuple[float, float] | None = None
    why: str = ""


Measures = Mapping[MetricName, Measure]


@dataclass(frozen=True, slots=True)
class Measured:
    """The metrics of some tasks, with the numbers of ended, completed, and open ones."""

    tasks: int
    completed: int
    open: int
    metrics: Measures


def measure(tasks: Iterable[TaskFacts]) -> Measured:
    """Return the metrics of `tasks`. An open task counts only for the counts of events."""
    every = tuple(tasks)
    ended = [task for task in every if task.outcome != "open"]
    completed = [task for task in ended if task.outcome == "completed"]
    made: dict[MetricName, Measure] = {
        "steps_per_task": _ratio(_known(ended, lambda task: task.steps), len(ended)),
        "tool_error_rate": _share(
            _known(every, lambda task: task.failed_calls), _known(every, lambda task: task.calls)
        ),
        "loop_detections": _count(_known(every, lambda task: task.loops)),
        "tokens_per_subtask": _ratio(
            _known(every, lambda task: task.tokens), _known(every, lambda task: task.subtasks)
        ),
        "completion_rate": _share(len(completed), len(ended)),
        "cost_per_task": _ratio(_known(ended, lambda task: task.cost), len(ended)),
        "escalation_rate": _share(
            _known(ended, lambda task: None if task.escalations is None else int(task.escalations > 0)),
            len(ended),
        ),
        "checkpoint_restores": _count(_known(every, lambda task: task.restores)),
        "guard_blocks_per_task": _ratio(_known(ended, lambda task: task.blocks), len(ended)),
        "step_latency_p95": _p95(ended),
    }
    unknown = {
        name: replace(found, why=_why(every, _FACTS[name]))
        for name, found in made.items()
        if found.value is None and name in _FACTS
    }
    return Measured(len(ended), len(completed), len(every) - len(ended), {**made, **unknown})


_FACTS: Final[Mapping[MetricName, tuple[str, ...]]] = {
    "steps_per_task": ("steps",),
    "tool_error_rate": ("calls", "failed_calls"),
    "loop_detections": ("loops",),
    "tokens_per_subtask": ("tokens", "subtasks"),
    "cost_per_task": ("cost",),
    "escalation_rate": ("escalations",),
    "checkpoint_restores": ("restores",),
    "guard_blocks_per_task": ("blocks",),
    "step_latency_p95": ("step_seconds",),
}
"""The facts that a metric needs."""


def _why(tasks: Sequence[TaskFacts], facts: Sequence[str]) -> str:
    """Return why the first task that lacks a fact lacks it; empty if none does."""
    return next((task.unmeasured[fact] for task in tasks for fact in facts if fact in task.unmeasured), "")


def _known(tasks: Sequence[TaskFacts], of: Callable[[TaskFacts], float | Decimal | None]) -> float | None:
    """Return the sum of a number over tasks; None if it is unknown for one."""
    total = Decimal(0)
    for task in tasks:
        value = of(task)
        if value is None:
            return None
        total += value if isinstance(value, Decimal) else Decimal(value)
    return float(total)


def _count(part: float | None) -> Measure:
    return Measure(part, part or 0.0, 1)


def _ratio(part: float | None, whole: float | None) -> Measure:
    if part is None or whole is None:
        return Measure(None, part or 0.0, int(whole or 0))
    return Measure(part / whole if whole else None, part, int(whole))


def _share(part: float | None, whole: float | None) -> Measure:
    found = _ratio(part, whole)
    if found.value is None or not found.whole:
        return found
    return Measure(found.value, found.part, found.whole, wilson(round(found.part), found.whole))


def _p95(tasks: Sequence[TaskFacts]) -> Measure:
    if any(task.step_seconds is None for task in tasks):
        return Measure(None, 0.0, 0)
    took = [
        seconds - waited
        for task in tasks
        for seconds, waited in zip(task.step_seconds or (), task.person_seconds or (), strict=True)
    ]
    value = nearest_rank(took, 95)
    return Measure(value, value or 0.0, len(took))


def nearest_rank(values: Iterable[float], percent: int) -> float | None:
    """Return the nearest-rank percentile, or None without values.

    It is the smallest value with at least `percent` % of values not above it.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
