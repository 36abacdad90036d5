"""Defines an agent: its model, prompt, tools, steps and settings; frozen, so that many runs share one definition."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from statek_sim.agent.budget import Budget
from statek_sim.agent.effects import Choice as Choice
from statek_sim.agent.replies.nudges import LIMIT, LIMIT_IN_ALL
from statek_sim.agent.step_enforcement import NO_STEPS, StepPlan
from statek_sim.agent.tools.registry import Offer, Registry
from statek_sim.errors import BadInput
from statek_sim.providers.wire.request import FormatName

MAX_ITERATIONS = 20
"""The default maximum number of iterations per run (agent document §4)."""

TOOL_TIMEOUT = 30.0
"""The default tool timeout, in virtual seconds."""

PROFILE: Final = "hardened"
"""The profile name in agents' traces and results."""


SEPARATOR: Final = "\n\n---\n\n"
"""The separator between layers (agent document §4, `_build_system_block`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers of the system block, from general to specific; later ones override earlier ones.

    They are fixed, because text that changes between turns (the time, for example) would invalidate the provider's
    prompt cache. Such text belongs in the history.
    """

    rules: str = ""
    project: str = ""
    session: str = ""
    environment: str = ""

    def block(self) -> str:
        """Return the system block: the non-empty layers, in order."""
        parts = (self.rules, self.project, self.session, self.environment)
        return SEPARATOR.join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """The definition of an agent.

    The defaults for `max_iterations` and `nudges` come from the documents; `budget` is unlimited by default. `nudges`
    limits consecutive nudges, `nudges_in_all` all nudges in a run (`NudgeBudget`). `tool_timeout` is in seconds (None:
    no limit). `retry_provider`: retry temporary provider failures, as STATEK's client does (behaviour 8).
    """

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
    nudges_in_all: int | None = LIMIT_IN_ALL
    tool_timeout: float | None = TOOL_TIMEOUT
    retry_provider: bool = True

    def __post_init__(self) -> None:
        """Raise `BadInput` for invalid limits."""
        if self.max_iterations < 1:
            raise BadInput(
                f"agent {self.role!r}: max_iterations must be at least 1, got {self.max_iterations}"
            )
        if self.nudges < 0:
            raise BadInput(f"agent {self.role!r}: nudges must be at least 0, got {self.nudges}")
        if self.nudges_in_all is not None and self.nudges_in_all < 0:
            raise BadInput(f"agent {self.role!r}: nudges_in_all must be at least 0, got {self.nudges_in_all}")
        if self.tool_timeout is not None and not self.tool_timeout > 0:
            raise BadInput(f"agent {self.role!r}: tool_timeout must be above 0, got {self.tool_timeout}")

    def offer(self, choice: Choice | None = None, *, without: Set[str] = frozenset()) -> Offer:
        """Return a turn's tools: those that match `choice` (None: the agent's own), except the names in `without`."""
        choice = self.choice if choice is None else choice
        return self.registry.offer(
            names=choice.names,
            task=choice.task,
            all_tags=choice.all_tags,
            any_tag=choice.any_tag,
            without=without,
        )
