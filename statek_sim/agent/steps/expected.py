"""What the contract of step enforcers says: which proposals must be let through, which must not, which may be either.

Written beside the enforcer of this package and without a line of it, so that one can be held against the other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from statek_sim.agent.steps.enforcement import Step, StepPlan


class Feature(StrEnum):
    """What a plan may ask of an enforcer."""

    ORDERED = "ordered"
    ANY_ORDER = "any_order"
    REPEATED = "repeated"
    OPTIONAL = "optional"
    HELPERS = "helpers"
    NAMED_HELPERS = "named_helpers"
    PREREQUISITES = "prerequisites"
    SIDE_BY_SIDE = "side_by_side"


class Finding(StrEnum):
    """What can be wrong with an enforcer of steps."""

    OUT_OF_ORDER = "lets a later step through"
    TOO_EARLY = "takes a call for done before it succeeded"
    NO_SECOND_TRY = "refuses a tool that failed"
    SHUT = "refuses the step that is due"
    NO_HELPERS = "refuses a helper"
    STRAY = "lets a tool through that is no helper"
    PREREQUISITE = "lets a step through before what it needs"
    REPEATS = "takes one call for two"
    EARLY_ANSWER = "lets the answer through while steps are open"
    NO_ANSWER = "refuses the answer when all is done"
    RAISES = "raises"
    GOES_ON = "never gives up"
    GIVES_UP = "gives up too early"


@dataclass(frozen=True, slots=True)
class Demand:
    """What has to happen to a proposal or an answer now, and why; `lets` None: the enforcer may choose."""

    lets: bool | None
    finding: Finding = Finding.SHUT
    because: str = ""


FREE = Demand(None)
"""Both are right: what the contract does not speak about."""


@dataclass(slots=True)
class Expected:
    """A plan's state as the contract sees it: only a call that succeeded is done, one in flight is not."""

    plan: StepPlan
    done: Counter[str] = field(default_factory=Counter)
    failed: set[str] = field(default_factory=set)
    flying: Counter[str] = field(default_factory=Counter)

    def proposed(self, tool: str) -> Demand:
        """Return what has to happen to a proposal of `tool`."""
        missing = next((name for name in self.needs(tool) if not self.done[name]), None)
        if missing is not None:
            finding = Finding.TOO_EARLY if self.flying[missing] else Finding.PREREQUISITE
            return Demand(False, finding, f"{missing!r} has to succeed before it")
        step = self._step(tool)
        if step is None:
            return self._helper(tool)
        if self.flying[tool]:
            return FREE
        if not step.required:
            return self._optional(step)
        return self._required(tool)

    def _required(self, tool: str) -> Demand:
        open_ = self.open
        if tool not in open_:
            return FREE
        if self.plan.order == "ordered" and open_[0] != tool:
            first = open_[0]
            if self.done[first]:
                return Demand(False, Finding.REPEATS, f"{first!r} comes first and has to succeed once more")
            if self.flying[first]:
                return Demand(False, Finding.TOO_EARLY, f"{first!r} comes first and did not succeed yet")
            return Demand(False, Finding.OUT_OF_ORDER, f"{first!r} comes first")
        if self._steps_fly():
            return FREE
        if tool in self.failed:
            return Demand(True, Finding.NO_SECOND_TRY, f"{tool!r} failed, so that it is still to be done")
        return Demand(True, Finding.SHUT, f"{tool!r} is still to be done and nothing stands before it")

    def _optional(self, step: Step) -> Demand:
        before = self.plan.steps[: self.plan.steps.index(step)]
        waits = any(one.required and one.tool in self.open for one in before)
        if self.done[step.tool] or self._steps_fly() or (self.plan.order == "ordered" and waits):
            return FREE
        return Demand(True, Finding.SHUT, f"{step.tool!r} is a step that may be taken now")

    def _helper(self, tool: str) -> Demand:
        if self.plan.helpers is None or tool in self.plan.helpers:
            return Demand(True, Finding.NO_HELPERS, f"{tool!r} is no step and may always be called")
        if self.open:
            return Demand(False, Finding.STRAY, f"{tool!r} is neither a step nor one of the helpers")
        return FREE

    def answered(self) -> Demand:
        """Return what has to happen to a final answer."""
        open_ = self.open
        if open_:
            first = open_[0]
            if self.done[first]:
                return Demand(False, Finding.REPEATS, f"{first!r} has to succeed once more")
            finding = Finding.TOO_EARLY if self.flying[first] else Finding.EARLY_ANSWER
            return Demand(False, finding, f"{first!r} still has to succeed")
        if any(self.flying.values()):
            return FREE
        return Demand(True, Finding.NO_ANSWER, "every required step succeeded")

    def let_through(self, tool: str) -> None:
        """Note a call that is executed now."""
        self.flying[tool] += 1

    def ended(self, tool: str, *, failed: bool) -> None:
        """Note how an executed call ended."""
        self.flying[tool] -= 1
        if failed:
            self.failed.add(tool)
        else:
            self.done[tool] += 1

    @property
    def open(self) -> list[str]:
        """The required steps that are to be done, one entry for each time, as listed."""
        left = Counter(self.done)
        found = []
        for step in self.plan.steps:
            for _ in range(step.times if step.required else 0):
                if left[step.tool]:
                    left[step.tool] -= 1
                else:
                    found.append(step.tool)
        return found

    def _step(self, tool: str) -> Step | None:
        return next((step for step in self.plan.steps if step.tool == tool), None)

    def needs(self, tool: str) -> tuple[str, ...]:
        """Return the tools that must have succeeded before `tool`."""
        return tuple(name for step in self.plan.steps if step.tool == tool for name in step.after)

    def _steps_fly(self) -> bool:
        return any(self.flying[step.tool] for step in self.plan.steps)
