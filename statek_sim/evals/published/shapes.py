"""Work of the shape of Forge's scenarios: so many calls, each needing what the one before gave, and a terminal one.

Only the shape is theirs: the number of calls of an ideal run, and whether the first tool call fails. It is played under
the variant `forge`, with a terminal tool, in the two arms that Forge publishes counts of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from statek_sim.agent.effects import Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.nudges import LIMIT
from statek_sim.agent.steps.enforcement import Step, StepPlan
from statek_sim.agent.tools.tool import Tool
from statek_sim.agent.variants import FORGE
from statek_sim.evals.models.profile import Profile
from statek_sim.evals.models.weak import WeakModel
from statek_sim.evals.models.writing import Meant
from statek_sim.evals.published.forge import PublishedScenario
from statek_sim.evals.seen import SeenCall
from statek_sim.values import JSON

TERMINAL: Final = "submit"
_SCHEMA: Final[dict[str, JSON]] = {
    "type": "object",
    "properties": {"value": {"type": "string", "description": "What the call before gave."}},
    "required": ["value"],
    "additionalProperties": False,
}
_BARE: Final = replace(FORGE, name="forge bare", tool_errors_in_a_row=0, final_gate=False)
ITERATIONS: Final = 15
"""What Forge's evaluation gives a run."""


class ShapedTask:
    """One run's work: `step_1` is given the task's word, each further step what the one before gave."""

    def __init__(self, scenario: PublishedScenario, seed: int) -> None:
        self._scenario = scenario
        self._word = f"{scenario.name}-{seed}"
        self._failures = 1 if scenario.fails_first else 0
        self.submitted: str | None = None
        names = [f"step_{number}" for number in range(1, scenario.calls)]
        self.steps = tuple(names)
        self.tools: Sequence[Tool] = [self._tool(name) for name in (*names, TERMINAL)]

    @property
    def eval_id(self) -> str:
        """The scenario's name."""
        return self._scenario.name

    @property
    def task(self) -> str:
        """What the user says."""
        return f"Begin with {self._word!r}, take every step with what the one before gave, and submit the last value."

    def _tool(self, name: str) -> Tool:
        def run(value: str) -> str:
            if name == TERMINAL:
                self.submitted = value
                return value
            if self._failures:
                self._failures -= 1
                raise RuntimeError("HTTP 500")
            return _after(name, value)

        return Tool(name=name, description=f"Do {name}.", parameters=_SCHEMA, run=run)

    def right(self, seen: Sequence[SeenCall]) -> Sequence[Meant]:
        """Return the call whose value is known and which was not answered yet."""
        value = self._word
        given = {
            (call.name, str(call.arguments.get("value"))): call.result for call in seen if call.error is None
        }
        for name in self.steps:
            result = given.get((name, value))
            if result is None:
                return [Meant(name, {"value": value})]
            value = result
        return [Meant(TERMINAL, {"value": value})]

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the steps after a tool."""
        at = self.steps.index(tool) if tool in self.steps else len(self.steps)
        return self.steps[at + 1 :]

    @property
    def correct(self) -> bool:
        """Whether what was submitted is what right steps give."""
        value = self._word
        for name in self.steps:
            value = _after(name, value)
        return self.submitted == value


def _after(name: str, value: str) -> str:
    return (
        f"value {int(hashlib.blake2b(f'{name}/{value}'.encode(), digest_size=4).hexdigest(), 16) % 10**8:08d}"
    )


def played(scenario: PublishedScenario, seed: int, profile: Profile, *, harness: bool) -> tuple[bool, bool]:
    """Return whether a run ended by its terminal tool, and whether what it submitted is right.

    `harness`: with Forge's guardrails (rescue, corrections, steps, two tool errors in a row), else bare.
    """
    task = ShapedTask(scenario, seed)
    provider = WeakModel(profile, seed).provider(task, tier=scenario.tier)
    steps = tuple(Step(tool=name) for name in task.steps) if harness else ()
    agent = AgentHarness(
        provider,
        tools=task.tools,
        steps=StepPlan(steps=steps, order="any", terminal=(TERMINAL,)),
        max_iterations=ITERATIONS,
        nudges=LIMIT if harness else 0,
        variant=FORGE if harness else _BARE,
        parts=Parts(reader=rescued) if harness else Parts(),
    )
    run = agent.run(task.task)
    completed = run.stop == "final"
    return completed, completed and task.correct
