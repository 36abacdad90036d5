"""Reads statistics for a run's tasks from a trace by either engine. Metrics are computed from these statistics.

A task is a unit of a job's work. It starts with the job's first event or resumption, and ends when the job stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from statek_sim import trace as events
from statek_sim.trace import Event

Outcome = Literal["completed", "failed", "open"]
"""How a task finished; `open` if the trace ends before the task does."""

Cost = Callable[[str, int, int], Decimal | None]
"""Returns a request's cost in US dollars, given its model, prompt tokens and completion tokens; None if unknown."""

COMPLETED: Final = frozenset({"final", "exit"})
"""The stop reasons of completed tasks."""

GUEST: Final = "guest"
"""The role of a guest, a third-party harness, in its trace."""
_WORKING: Final = frozenset({"STARTED", "WARMING_UP"})
_WORK: Final = (events.StepStarted, events.LLMRequested, events.ToolCalled, events.CodeExecuted)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Statistics for one task. Times are in virtual seconds, costs in US dollars, and unknown values are None.

    `group` is a name for comparisons, such as the suite. `calls` counts executed calls. `failed_calls` includes calls
    that never returned. A call that returns after its task or process ended counts towards the task that made it.
    `tokens` are prompt and completion tokens, as reported by the provider or, without a report, as measured. `subtasks`
    counts workflow steps and delegated jobs that succeeded, at least 1 for a completed task. `step_seconds` lists the
    steps' durations, and `person_seconds` the time that each step spent waiting for a person. `unmeasured` maps each
    unknown field to the reason.
    """

    run: str
    group: str
    job: str
    ended: float
    outcome: Outcome
    stop: str | None
    steps: int | None = None
    calls: int | None = None
    failed_calls: int | None = None
    loops: int | None = None
    tokens: int | None = None
    subtasks: int | None = None
    cost: Decimal | None = None
    escalations: int | None = None
    restores: int | None = None
    blocks: int | None = None
    step_seconds: tuple[float, ...] | None = None
    person_seconds: tuple[float, ...] | None = None
    unmeasured: Mapping[str, str] = field(default_factory=dict)


GUEST_LACKS: Final[Mapping[str, str]] = {
    "escalations": "escalations of a guest are not visible",
    "restores": "checkpoints of a guest are not visible",
    "blocks": "guards of a guest are not visible",
}
"""Fields that are always unknown for a guest, because neither requests nor tools show them, with the reasons."""
NO_PRICES: Final = "no prices are configured"


_COUNTED: Final = (
    *("steps", "calls", "failed_calls", "loops", "tokens", "subtasks"),
    *("escalations", "restores", "blocks"),
)


@dataclass(slots=True)
class _Task:
    """The counts and times of one task, collected while its events are read."""

    began: float
    counts: Counter[str] = field(default_factory=Counter)
    """The names of fields that are counts."""
    open_calls: int = 0
    cost: Decimal | None = None
    requested_calls: int = 0
    unpriced: str = ""
    step_began: float | None = None
    step_seconds: list[float] = field(default_factory=list)
    person_seconds: list[float] = field(default_factory=list)
    asked_at: float | None = None
    waited: float = 0.0

    def end_step(self, at: float) -> None:
        if self.step_began is not None:
            self.step_seconds.append(at - self.step_began)
            self.person_seconds.append(self.waited)
        self.step_began, self.waited = None, 0.0


class _Reader:
    """Reads one run's events; a job may have several tasks, one after another."""

    def __init__(self, run: str, group: str, cost: Cost | None) -> None:
        self._run = run
        self._group = group
        self._cost = cost
        self._tasks: dict[str, _Task] = {}
        self._models: dict[str, str] = {}
        self._guests: set[str] = set()

    def follow(self, event: Event) -> TaskFacts | None:
        """Process the next event; return the task that it ends, or None."""
        if not event.job:
            return None
        if isinstance(event, events.JobStopped):
            return self._ended(event.job, event.at, event.reason)
        if isinstance(event, events.JobCreated):
            self._models[event.job] = event.model
            if event.role == GUEST:
                self._guests.add(event.job)
            return None
        if isinstance(event, events.StatusChanged):
            # Only jobs in the two engines change their status: this agent merely has a guest's role name.
            self._guests.discard(event.job)
        task = self._tasks.get(event.job)
        if task is None:
            if not _begins(event):
                return None
            task = self._tasks[event.job] = _Task(event.at)
        self._note(task, event)
        return None

    def _note(self, task: _Task, event: Event) -> None:
        match event:
            case events.StepStarted():
                task.end_step(event.at)
                task.counts["steps"] += 1
                task.step_began = event.at
            case events.ToolCalled():
                task.counts["calls"] += 1
                task.open_calls += 1
            case events.ToolReturned() if task.open_calls:
                task.open_calls -= 1
                task.counts["failed_calls"] += event.error is not None
            case events.LLMRequested():
                self._models[event.job] = event.model
            case events.LLMReplied():
                self._pay(task, event)
            case events.StepMoved():
                task.counts["subtasks"] += event.change in ("committed", "done as proposed")
            case events.SubtaskCompleted():
                task.counts["subtasks"] += event.error is None
            case events.HarnessSpoke():
                task.counts["loops"] += event.part == "protection"
                task.counts["blocks"] += event.part.endswith(" guard") and event.action == "block"
            case events.StatusChanged(new="SUSPENDED"):
                task.asked_at = event.at
            case events.StatusChanged(old="SUSPENDED") if task.asked_at is not None:
                task.waited += event.at - task.asked_at
                task.asked_at = None
            case events.Escalated():
                task.counts["escalations"] += event.to_level is not None
            case events.RunResumed():
                task.counts["restores"] += 1
            case _:
                pass

    def _pay(self, task: _Task, event: events.LLMReplied) -> None:
        prompt = event.measured_prompt if event.reported_prompt is None else event.reported_prompt
        completion = (
            event.measured_completion if event.reported_completion is None else event.reported_completion
        )
        task.counts["tokens"] += prompt + completion
        task.requested_calls += len(event.tool_calls)
        model = self._models.get(event.job, "")
        cost = None if self._cost is None else self._cost(model, prompt, completion)
        if cost is None:
            task.unpriced = NO_PRICES if self._cost is None else f"there is no price for model {model!r}"
        else:
            task.cost = (task.cost or Decimal(0)) + cost

    def _ended(self, job: str, at: float, reason: str) -> TaskFacts:
        task = self._tasks.pop(job, None) or _Task(at)
        task.end_step(at)
        return self._facts(job, task, at, "completed" if reason in COMPLETED else "failed", reason)

    def left(self) -> Iterator[TaskFacts]:
        """Yield the tasks that did not finish."""
        for job, task in self._tasks.items():
            yield self._facts(job, task, task.began, "open", None)

    def _facts(self, job: str, task: _Task, at: float, outcome: Outcome, stop: str | None) -> TaskFacts:
        cost = None if task.unpriced or self._cost is None else task.cost or Decimal(0)
        lacks = dict(GUEST_LACKS) if job in self._guests else {}
        if lacks and task.requested_calls and not task.counts["calls"]:
            lacks["calls"] = "the model called tools, and none of the guest's own was recorded"
        counts: dict[str, int | None] = {name: task.counts[name] for name in _COUNTED}
        counts["failed_calls"] = task.counts["failed_calls"] + task.open_calls
        counts["subtasks"] = max(task.counts["subtasks"], int(outcome == "completed"))
        counts |= dict.fromkeys((*lacks, *(["failed_calls"] if "calls" in lacks else [])))
        return TaskFacts(
            run=self._run,
            group=self._group,
            job=job,
            ended=at,
            outcome=outcome,
            stop=stop,
            cost=cost,
            **counts,
            step_seconds=tuple(task.step_seconds),
            person_seconds=tuple(task.person_seconds),
            unmeasured=lacks | ({"cost": task.unpriced or NO_PRICES} if cost is None else {}),
        )


def _begins(event: Event) -> bool:
    """Return whether an event starts a task; events between a job's tasks do not."""
    if isinstance(event, events.StatusChanged):
        return event.new in _WORKING
    if isinstance(event, events.RunResumed):
        # This is the first event in the trace of a new process. A run that had already ended does not continue.
        return event.point != "ended"
    return isinstance(event, _WORK)


def task_facts(
    trace: Iterable[Event], *, run: str = "run", group: str = "all", cost: Cost | None = None
) -> list[TaskFacts]:
    """Return statistics for a run's tasks, in the order in which the tasks finished; open tasks come last."""
    reader = _Reader(run, group, cost)
    found = [task for event in trace if (task := reader.follow(event)) is not None]
    return [*found, *reader.left()]
