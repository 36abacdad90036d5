"""An eval as a weak model works on it: what would be right next, and which required tools come later."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.agent.tools.tool import Tool
from statek_sim.evals.expression import Unanswerable
from statek_sim.evals.models.writing import Meant
from statek_sim.evals.scenario import Instance
from statek_sim.evals.seen import SeenCall


class EvalTask:
    """One eval with its seed."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._order = [step.tool for step in instance.steps.steps]

    @property
    def eval_id(self) -> str:
        """The eval."""
        return self._instance.eval_id

    @property
    def tools(self) -> Sequence[Tool]:
        """What may be called."""
        return self._instance.tools

    def right(self, seen: Sequence[SeenCall]) -> Sequence[Meant] | str | None:
        """Return what the plan says is next; None where what is shown does not have what it needs."""
        try:
            step = self._instance.plan.next(seen)
        except Unanswerable:
            return None
        return step if isinstance(step, str) else [Meant(call.name, call.arguments) for call in step]

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the required tools after a tool; of one that is not required, all of them but the first."""
        at = self._order.index(tool) if tool in self._order else 0
        return self._order[at + 1 :]
