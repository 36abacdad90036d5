"""What an agent is: its model, prompt, tools, steps and settings; frozen, so that many runs share one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from statek_sim.agent.budget import Budget
from statek_sim.agent.effects import Choice as Choice
from statek_sim.agent.prompt import Layers
from statek_sim.agent.replies.nudges import LIMIT
from statek_sim.agent.steps.enforcement import NO_STEPS, StepPlan
from statek_sim.agent.tools.registry import Offer, Registry
from statek_sim.agent.variants import HARDENED, Variant
from statek_sim.errors import BadInput
from statek_sim.providers.wire.format import FormatName

MAX_ITERATIONS = 20
"""Iterations before a run is given up (004 §4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent. `max_iterations` and `nudges` are the documents'; `budget` limits nothing by default."""

    role: str = "agent"
    model: str = "gpt-4o"
    provider: str = ""
    wire: FormatName = "openai"
    temperature: float | None = None
    layers: Layers = field(default_factory=Layers)
    registry: Registry = field(default_factory=Registry)
    choice: Choice = field(default_factory=Choice)
    plan: StepPlan = NO_STEPS
    budget: Budget = field(default_factory=Budget)
    max_iterations: int = MAX_ITERATIONS
    nudges: int = LIMIT
    variant: Variant = HARDENED

    def __post_init__(self) -> None:
        """Raise `BadInput` for limits that are none, and where the variant's runs could never end."""
        if self.max_iterations < 1:
            raise BadInput(
                f"agent {self.role!r}: max_iterations is {self.max_iterations}, expected 1 or more"
            )
        if self.nudges < 0:
            raise BadInput(f"agent {self.role!r}: nudges is {self.nudges}, expected 0 or more")
        if self.variant.final_answer == "terminal_tool" and not self.plan.terminal:
            raise BadInput(
                f"agent {self.role!r}: under variant {self.variant.name!r} a run ends by a terminal tool; "
                "expected the steps to name one under terminal"
            )

    def offer(self, choice: Choice | None = None, *, without: Set[str] = frozenset()) -> Offer:
        """Return the tools of a turn as the registry has them now, without these; None: this agent's choice."""
        choice = self.choice if choice is None else choice
        return self.registry.offer(
            names=choice.names,
            task=choice.task,
            all_tags=choice.all_tags,
            any_tag=choice.any_tag,
            without=without,
        )
