"""Step enforcement (004 §6, component 3): which tools must have succeeded before the final answer, in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from statek_sim.agent.replies.nudges import Failure
from statek_sim.agent.variants import Variant
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: a tool that has to succeed `times`; one that is not `required` may.

    `after` are tools that must have succeeded before.
    """

    tool: str
    times: int = 1
    required: bool = True
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """The steps of a workflow. `helpers`: tools beside the steps that may always be called, None for all of them.

    `terminal` are the tools whose success ends the run, where the variant ends runs so.
    """

    steps: tuple[Step, ...] = ()
    order: Literal["ordered", "any"] = "ordered"
    helpers: tuple[str, ...] | None = None
    terminal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `BadInput` for a plan that can never be done."""
        if self.order not in ("ordered", "any"):
            raise BadInput(f"steps: order is {self.order!r}, expected ordered or any")
        for name in ("steps", "helpers", "terminal"):
            if isinstance(getattr(self, name), str):
                raise BadInput(f"steps: {name} is {getattr(self, name)!r}, expected a list")
        for step in self.steps:
            if type(step.times) is not int or step.times < 1:
                raise BadInput(f"step {step.tool!r}: times is {step.times}, expected 1 or more")
            if step.tool in step.after:
                raise BadInput(f"step {step.tool!r}: it cannot come after itself")
        _refuse_cycles(self.steps)

    @property
    def required_or_terminal(self) -> bool:
        """Whether a run needs certain tools to end well."""
        return bool(self.terminal) or any(step.required for step in self.steps)


def _refuse_cycles(steps: Sequence[Step]) -> None:
    after = {
        tool: {name for step in steps if step.tool == tool for name in step.after} for tool in _tools(steps)
    }
    open_ = dict(after)
    while open_:
        ready = [tool for tool, before in open_.items() if not before & open_.keys()]
        if not ready:
            raise BadInput(f"steps {', '.join(sorted(open_))}: each waits for another one of them")
        for tool in ready:
            del open_[tool]


def check_plan(plan: StepPlan, tools: Iterable[str]) -> None:
    """Raise `BadInput` for a plan that names a tool which is not among these: a model cannot take that step."""
    known = list(tools)
    named = [("steps", step.tool) for step in plan.steps]
    named += [("steps: after", name) for step in plan.steps for name in step.after]
    named += [("steps: helpers", name) for name in plan.helpers or ()]
    named += [("steps: terminal", name) for name in plan.terminal]
    for where, name in named:
        if name not in known:
            hint = suggestion(name, known) or (f" Known: {', '.join(known)}" if known else " There is none")
            raise BadInput(f"{where}: {name!r} is no tool of this agent.{hint}")


def never_offered(plan: StepPlan, offered: Iterable[str], variant: Variant) -> str | None:
    """Return why a plan cannot be done with a choice of tools that is the same on every turn, None when it can.

    A required step, or what it comes after, is not among them; or no terminal tool is, where one ends the run.
    """
    names = set(offered)
    if variant.executes != "offered":
        return None
    held = variant.final_gate, variant.final_answer == "terminal_tool"
    for step, problem in beyond(plan.steps, plan.terminal, lambda tool: tool not in names):
        if held[step is None]:
            return problem
    return None


def beyond(
    steps: Sequence[Step], terminal: Sequence[str], left_out: Callable[[str], bool]
) -> Iterator[tuple[int | None, str]]:
    """Yield what of a plan an offer leaves out: where (a step's position, None for what ends a run) and the problem."""
    for position, step in enumerate(steps):
        for tool in (*step.after, step.tool) if step.required else ():
            if left_out(tool):
                yield position, f"tool {tool!r} is required and never offered; expected an offer that has it"
    if terminal and all(map(left_out, terminal)):
        yield None, "no terminal tool is ever offered, so that no run ends; expected an offer that has one"


def _tools(steps: Iterable[Step]) -> list[str]:
    return list(dict.fromkeys(step.tool for step in steps))


NO_STEPS = StepPlan()
"""A workflow in which anything may be called and answered."""


@dataclass(frozen=True, slots=True)
class StepRefusal:
    """Why a call, or a final answer, does not fit the plan now."""

    failure: Failure
    details: dict[str, object]


class StepEnforcer:
    """Holds calls against a plan: `check`, then `reserve`, then `commit` or `roll_back` when the tool has ended.

    What is reserved is not done: another step that waits for it waits for its result. Under a variant whose steps are
    done when they are proposed, `reserve` commits at once and nothing takes it back.
    """

    def __init__(self, plan: StepPlan, variant: Variant) -> None:
        self._plan = plan
        self._variant = variant
        self._steps = frozenset(step.tool for step in plan.steps)
        self._watched = self._steps | {name for step in plan.steps for name in step.after}
        self._done: Counter[str] = Counter()
        self._order: list[str] = []
        self._open: tuple[str, ...] | None = None
        self.active = bool(plan.steps or plan.terminal)
        """Whether there is anything to hold calls against."""

    def saved(self) -> dict[str, object]:
        """Return what is done, as values that a checkpoint can hold."""
        return {"done": dict(self._done), "order": list(self._order)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `saved` returned."""
        self._done, self._order = Counter(saved["done"]), list(saved["order"])
        self._open = None

    @property
    def done(self) -> tuple[str, ...]:
        """The tools of steps that are done, in the order in which they were; a repeated one several times."""
        return tuple(self._order)

    @property
    def open(self) -> tuple[str, ...]:
        """The tools of required steps that are still to be done, a repeated one as often as it is."""
        if self._open is None:
            self._open = self._still_open()
        return self._open

    def _still_open(self) -> tuple[str, ...]:
        left = Counter(self._done)
        found: list[str] = []
        for step in self._plan.steps:
            if not step.required:
                continue
            times = step.times if self._variant.counts_repeats else 1
            for _ in range(times):
                if left[step.tool] > 0:
                    if self._variant.counts_repeats:
                        left[step.tool] -= 1
                else:
                    found.append(step.tool)
        return tuple(found)

    def check(self, tool: str, *, iteration: int) -> StepRefusal | None:
        """Return why `tool` may not be called now, None when it may; `iteration` counts from 0."""
        if self._variant.expected_step == "iteration":
            return self._check_by_iteration(tool, iteration)
        open_ = self.open
        if tool in self._plan.terminal:
            return self.final() if open_ and self._variant.final_gate else None
        missing = next((name for name in self._after(tool) if self._done[name] == 0), None)
        if missing is not None:
            return StepRefusal(Failure.PREREQUISITE, {"called": tool, "expected": missing})
        if not open_:
            return None
        order = self._variant.step_order
        ordered = order == "strict" or (order == "declared" and self._plan.order == "ordered")
        expected = self._next(open_)
        if tool in self._steps:
            # One that is optional, or done already, may be taken at any time; an open one has to wait its turn.
            free = order != "strict" and tool not in open_
            if not ordered or tool == expected or free:
                return None
        elif self._is_helper(tool):
            return None
        return StepRefusal(Failure.WRONG_TOOL, {"called": tool, "expected": expected})

    def _check_by_iteration(self, tool: str, iteration: int) -> StepRefusal | None:
        """004 §4 asks for the step of the iteration, and 004 §6 refuses every other tool while one is open."""
        required = [step.tool for step in self._plan.steps if step.required]
        if iteration >= len(required) or tool == required[iteration]:
            return None
        return StepRefusal(Failure.WRONG_TOOL, {"called": tool, "expected": required[iteration]})

    def _next(self, open_: Sequence[str]) -> str:
        """Return the first open step whose prerequisites are done; one always is, or will be by the others."""
        ready = (name for name in open_ if all(self._done[before] for before in self._after(name)))
        return next(ready, open_[0])

    def _after(self, tool: str) -> tuple[str, ...]:
        return tuple(name for step in self._plan.steps if step.tool == tool for name in step.after)

    def _is_helper(self, tool: str) -> bool:
        if self._variant.helpers == "refused":
            return False
        return self._plan.helpers is None or tool in self._plan.helpers

    def reserve(self, tool: str) -> None:
        """Note that a call of `tool` is about to be executed."""
        if tool in self._watched and self._variant.step_done == "proposed":
            self._finish(tool)

    def commit(self, tool: str) -> bool:
        """Note that it succeeded; return whether that was a step."""
        if tool not in self._watched or self._variant.step_done == "proposed":
            return False
        self._finish(tool)
        return tool in self._steps

    def roll_back(self, tool: str) -> bool:
        """Note that it failed, so that it may be tried again; return whether that was a step taken back."""
        return tool in self._steps and self._variant.step_done != "proposed"

    def _finish(self, tool: str) -> None:
        self._done[tool] += 1
        self._open = None
        if tool in self._steps:
            self._order.append(tool)

    def final(self) -> StepRefusal | None:
        """Return why a final answer has to wait, None when it need not."""
        open_ = self.open
        if not open_ or not self._variant.final_gate:
            return None
        details: dict[str, object] = {"open": ", ".join(open_), "expected": self._next(open_)}
        return StepRefusal(Failure.UNFINISHED, details)

    def is_terminal(self, tool: str) -> bool:
        """Return whether the success of `tool` ends the run."""
        return tool in self._plan.terminal
