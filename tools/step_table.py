"""What the checker of step enforcers finds in ours, in document 004's printed code and in Forge's.

    python -m tools.step_table

docs/bring-your-own-harness.md shows it. Forge wants Python 3.12; where it is not installed its row is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from statek_sim.agent.steps.contract import Feature, MakeEnforcer, step_enforcer_findings
from statek_sim.agent.steps.enforcement import StepEnforcer, StepPlan
from statek_sim.agent.steps.expected import Finding

EVERYTHING: Final = tuple(Feature)
LISTED: Final = ("ordered", "optional", "helpers", "repeated")
"""What a list of steps in order can say: document 004's words, with the reads that its text describes."""

ANY: Final = ("any_order", "optional", "helpers", "prerequisites", "side_by_side")
"""What Forge has words for: required steps in any order, and prerequisites."""


class Ours:
    """Our enforcer."""

    def __init__(self, plan: StepPlan) -> None:
        self._enforcer = StepEnforcer(plan)

    def propose(self, tool: str) -> object | None:
        """Check."""
        return tool if self._enforcer.check(tool) is None else None

    def finish(self, call: object, *, failed: bool) -> None:
        """Commit, or roll back."""
        end = self._enforcer.roll_back if failed else self._enforcer.commit
        end(str(call))

    def may_answer(self) -> bool:
        """Ask the gate before the final answer."""
        return self._enforcer.final() is None


@dataclass
class WorkflowStep:
    """Document 004, §6, `step_enforcer.py`."""

    tool_name: str
    required: bool = True


@dataclass
class PrintedEnforcer:
    """Document 004, §6, `step_enforcer.py`, word for word but for what it returns: whether the tool may be called."""

    required_steps: list[WorkflowStep]
    completed_steps: list[str] = field(default_factory=list)

    def validate_step(self, proposed_tool: str) -> bool:
        """Return whether the tool is the next required one."""
        next_required = self.next_required_step()
        if next_required is None:
            return True
        if proposed_tool == next_required.tool_name:
            self.completed_steps.append(proposed_tool)
            return True
        return False

    def next_required_step(self) -> WorkflowStep | None:
        """Return the first required step that was not proposed yet."""
        for step in self.required_steps:
            if step.required and step.tool_name not in self.completed_steps:
                return step
        return None


class Printed:
    """The printed enforcer; its code never looks at a final answer, `gated` does as its text says."""

    def __init__(self, plan: StepPlan, *, gated: bool) -> None:
        steps = [WorkflowStep(step.tool, step.required) for step in plan.steps for _ in range(step.times)]
        self._enforcer = PrintedEnforcer(steps)
        self._gated = gated

    def propose(self, tool: str) -> object | None:
        """Validate."""
        return tool if self._enforcer.validate_step(tool) else None

    def finish(self, call: object, *, failed: bool) -> None:
        """Do nothing: the document's enforcer is not told."""

    def may_answer(self) -> bool:
        """Return whether an answer passes."""
        return not self._gated or self._enforcer.next_required_step() is None


class Forges:
    """Forge's enforcer, driven as its runner drives it; a final answer is the call of a terminal tool."""

    def __init__(self, plan: StepPlan) -> None:
        self._workflow: Any = importlib.import_module("forge.core.workflow")
        home: Any = importlib.import_module("forge.guardrails.step_enforcer")
        self._enforcer = home.StepEnforcer(
            required_steps=[step.tool for step in plan.steps if step.required],
            terminal_tools=frozenset({"answer"}),
            tool_prerequisites={step.tool: list(step.after) for step in plan.steps if step.after},
        )

    def _call(self, tool: str) -> list[Any]:
        return [self._workflow.ToolCall(tool=tool, args={})]

    def propose(self, tool: str) -> object | None:
        """Check the terminal rule and the prerequisites."""
        call = self._call(tool)
        wrong = self._enforcer.check(call).needs_nudge or self._enforcer.check_prerequisites(call).needs_nudge
        return None if wrong else tool

    def finish(self, call: object, *, failed: bool) -> None:
        """Record a success."""
        if not failed:
            self._enforcer.record(str(call), {})

    def may_answer(self) -> bool:
        """Check the terminal tool."""
        return not self._enforcer.check(self._call("answer")).needs_nudge


ENFORCERS: Final[Mapping[str, tuple[MakeEnforcer, Sequence[str]]]] = {
    "ours": (Ours, EVERYTHING),
    "document 004 as printed": (lambda plan: Printed(plan, gated=False), LISTED),
    "the same with a gate before the answer": (lambda plan: Printed(plan, gated=True), LISTED),
    "Forge 0.10.0": (Forges, (*ANY, "repeated")),
}
"""How each is made, and which plans it is asked about."""

SHOWN: Final = tuple(finding for finding in Finding if finding not in (Finding.GOES_ON, Finding.GIVES_UP))


def found_in(name: str) -> Callable[[], dict[Finding, str]]:
    """Return what finds everything that is wrong with the enforcer of that row."""
    make, supports = ENFORCERS[name]
    return lambda: step_enforcer_findings(make, supports=supports)


def rows() -> Iterator[str]:
    """Yield the rows of the table in Markdown, those of enforcers that are installed."""
    for name in ENFORCERS:
        if name.startswith("Forge") and find_spec("forge") is None:
            continue
        found = found_in(name)()
        yield f"| {name} | {'; '.join(kind for kind in SHOWN if kind in found) or '-'} |"


if __name__ == "__main__":
    print("\n".join(rows()))
