"""Step enforcement: which tools must succeed before the final answer, and in what order.

Source: the agent document §6, component 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from statek_sim.agent.replies.nudges import Failure
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A workflow step: a tool that must succeed `times` times, or may if it is not `required`.

    The tools in `after` must have succeeded before.
    """

    tool: str
    times: int = 1
    required: bool = True
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """The steps in a workflow. `helpers`: tools outside the steps that may always be called (None: all of them)."""

    steps: tuple[Step, ...] = ()
    order: Literal["ordered", "any"] = "ordered"
    helpers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raise `BadInput` for a plan that can never be completed."""
        if self.order not in ("ordered", "any"):
            raise BadInput(f"steps: unknown order {self.order!r}; expected ordered or any")
        for name in ("steps", "helpers"):
            if isinstance(getattr(self, name), str):
                raise BadInput(f"steps: {name} must be a list, got {getattr(self, name)!r}")
        for step in self.steps:
            if type(step.times) is not int or step.times < 1:
                raise BadInput(f"step {step.tool!r}: times must be 1 or more, got {step.times}")
            if step.tool in step.after:
                raise BadInput(f"step {step.tool!r}: a step cannot come after itself")
        _refuse_cycles(self.steps)

    @property
    def required(self) -> bool:
        """Whether certain tools must succeed in a run."""
        return any(step.required for step in self.steps)


def _refuse_cycles(steps: Sequence[Step]) -> None:
    open_: dict[str, set[str]] = {}
    for step in steps:
        open_.setdefault(step.tool, set()).update(step.after)
    while open_:
        ready = [tool for tool, before in open_.items() if not before & open_.keys()]
        if not ready:
            raise BadInput(f"steps {', '.join(sorted(open_))}: these steps depend on each other")
        for tool in ready:
            del open_[tool]


def check_plan(plan: StepPlan, tools: Iterable[str]) -> None:
    """Raise `BadInput` if a plan names a tool that is not in `tools`."""
    known = list(tools)
    named = [("steps", step.tool) for step in plan.steps]
    named += [("steps: after", name) for step in plan.steps for name in step.after]
    named += [("steps: helpers", name) for name in plan.helpers or ()]
    for where, name in named:
        if name not in known:
            hint = suggestion(name, known) or (
                f" Known: {', '.join(known)}" if known else " None are defined"
            )
            raise BadInput(f"{where}: {name!r} is not a tool of this agent.{hint}")


def never_offered(plan: StepPlan, offered: Iterable[str]) -> str | None:
    """Return why a plan cannot be completed with the `offered` tools, or None if it can.

    The reason is a required step, or one of its prerequisites, that is not offered.
    """
    names = set(offered)
    return next((problem for _, problem in beyond(plan.steps, lambda tool: tool not in names)), None)


def beyond(steps: Sequence[Step], left_out: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """Yield the position of each required step whose tool or prerequisite is in `left_out`, and the problem."""
    for position, step in enumerate(steps):
        for tool in (*step.after, step.tool) if step.required else ():
            if left_out(tool):
                yield position, f"tool {tool!r} is required but never offered; offer it"


NO_STEPS = StepPlan()
"""A workflow that does not restrict calls or answers."""


@dataclass(frozen=True, slots=True)
class StepRefusal:
    """Why a call or a final answer does not fit the plan at this point; `details` are filled into the nudge."""

    failure: Failure
    details: dict[str, object]


class StepEnforcer:
    """Enforces a plan: call `check` before a tool, then `commit` or `roll_back` when the tool has ended.

    A step is done when its tool has succeeded, so a step that depends on another waits for the other's result.
    """

    def __init__(self, plan: StepPlan) -> None:
        self._plan = plan
        self._steps = frozenset(step.tool for step in plan.steps)
        self._watched = self._steps | {name for step in plan.steps for name in step.after}
        self._done: Counter[str] = Counter()
        self._order: list[str] = []
        self._open: tuple[str, ...] | None = None
        self.active = bool(plan.steps)
        """Whether there is anything to enforce."""

    def saved(self) -> dict[str, object]:
        """Return the completed steps as values that a checkpoint can store."""
        return {"done": dict(self._done), "order": list(self._order)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`."""
        self._done, self._order = Counter(saved["done"]), list(saved["order"])
        self._open = None

    @property
    def done(self) -> tuple[str, ...]:
        """The tools of completed steps, in order of completion; a repeated step appears several times."""
        return tuple(self._order)

    @property
    def open(self) -> tuple[str, ...]:
        """The tools of required steps that are still open; a repeated step appears as often as it is still needed."""
        if self._open is None:
            self._open = self._still_open()
        return self._open

    def _still_open(self) -> tuple[str, ...]:
        left = Counter(self._done)
        found: list[str] = []
        for step in self._plan.steps:
            if not step.required:
                continue
            for _ in range(step.times):
                if left[step.tool] > 0:
                    left[step.tool] -= 1
                else:
                    found.append(step.tool)
        return tuple(found)

    def check(self, tool: str) -> StepRefusal | None:
        """Return why `tool` may not be called now, or None if it may."""
        open_ = self.open
        missing = next((name for name in self._after(tool) if self._done[name] == 0), None)
        if missing is not None:
            return StepRefusal(Failure.PREREQUISITE, {"called": tool, "expected": missing})
        if not open_:
            return None
        expected = self._next(open_)
        if tool in self._steps:
            # An optional or completed step may be taken at any time; an open one has to wait its turn.
            if self._plan.order == "any" or tool == expected or tool not in open_:
                return None
        elif self._plan.helpers is None or tool in self._plan.helpers:
            return None
        return StepRefusal(Failure.WRONG_TOOL, {"called": tool, "expected": expected})

    def _next(self, open_: Sequence[str]) -> str:
        """Return the first open step whose prerequisites are done.

        There always is one, now or after the calls in progress.
        """
        ready = (name for name in open_ if all(self._done[before] for before in self._after(name)))
        return next(ready, open_[0])

    def _after(self, tool: str) -> tuple[str, ...]:
        return tuple(name for step in self._plan.steps if step.tool == tool for name in step.after)

    def commit(self, tool: str) -> bool:
        """Record that a call succeeded; return whether it was a step."""
        if tool not in self._watched:
            return False
        self._done[tool] += 1
        self._open = None
        if tool in self._steps:
            self._order.append(tool)
        return tool in self._steps

    def roll_back(self, tool: str) -> bool:
        """Record that a call failed, so that it may be retried; return whether a step was rolled back."""
        return tool in self._steps

    def final(self) -> StepRefusal | None:
        """Return why the run may not give its final answer yet, or None if it may."""
        open_ = self.open
        if not open_:
            return None
        details: dict[str, object] = {"open": ", ".join(open_), "expected": self._next(open_)}
        return StepRefusal(Failure.UNFINISHED, details)
