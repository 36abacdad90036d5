"""The settings of a context manager: the tokens of a prompt, what of it stays, the steps that shorten it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.agent.context.compaction_state import Step
from statek_sim.agent.effects import SideModel
from statek_sim.errors import BadInput

TierName = Literal["clear", "summarise", "drop", "cut"]
"""The steps that there are; `steps.STEPS` has what each does."""

STEPS: Final[tuple[TierName, ...]] = ("clear", "summarise", "drop", "cut")
"""The steps in their order, unless it is said otherwise; each goes only as far as it has to."""

BUDGET = 8192
"""Tokens of a prompt and the room for its answer (004 §5, `budget_tokens`)."""
RESERVE = 1024
"""Of these, the room for the answer (004 §5, `reserve_tokens`)."""
KEEP = 4
"""Newest exchanges that are kept as they are (004 §5, `keep_recent`)."""
MAX_SUMMARY = 512
"""Tokens of a summary (004 §5, `max_summary_tokens`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """What a prompt may have, in tokens, and how it is kept.

    `budget`: the prompt and the `reserve` for its answer. `target`: what a step that has to act comes down to, so that
    the next one is some turns away; None: half of the budget less the reserve. `keep`: newest turns that stay as they
    are while there is anything else. `pinned`: facts; what holds one is never touched. `steps`: names of steps or
    callables in their order. `summary`: the model that writes summaries, None for a rule.
    """

    budget: int = BUDGET
    reserve: int = RESERVE
    target: int | None = None
    keep: int = KEEP
    pinned: tuple[str, ...] = ()
    steps: tuple[TierName | Step, ...] = STEPS
    summary: SideModel | None = None
    max_summary: int = MAX_SUMMARY

    def __post_init__(self) -> None:
        """Raise `BadInput` for numbers that contradict each other."""
        for name in ("budget", "max_summary"):
            if getattr(self, name) < 1:
                raise BadInput(f"context: {name} is {getattr(self, name)}, expected 1 token or more")
        if not 0 <= self.reserve < self.budget:
            raise BadInput(
                f"context: reserve is {self.reserve}, expected 0 or more and less than budget, {self.budget}"
            )
        if self.keep < 0:
            raise BadInput(f"context: keep is {self.keep}, expected 0 turns or more")
        if self.target is not None and not 0 < self.target <= self.room:
            raise BadInput(
                f"context: target is {self.target}, expected 1 to {self.room}, the budget less the reserve"
            )
        if self.steps == ():
            raise BadInput("context: steps is empty, expected one at least")
        for name in ("pinned", "steps"):
            if isinstance(getattr(self, name), str):
                raise BadInput(f"context: {name} is {getattr(self, name)!r}, expected a list")
        if not all(fact.strip() for fact in self.pinned):
            raise BadInput("context: a pinned fact is empty, expected a text to look for")

    @property
    def room(self) -> int:
        """Tokens that a prompt may have."""
        return self.budget - self.reserve

    @property
    def aim(self) -> int:
        """Tokens that a step comes down to."""
        return max(1, self.room // 2) if self.target is None else self.target
