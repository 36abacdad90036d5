"""A run's budget (harness document §3.4: tokens, cost, wall time, steps), its usage, and how a run ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from statek_sim.agent.effects import Spent
from statek_sim.errors import BadInput
from statek_sim.usage.token_usage import TurnUsage, UsageTotals


class Counters:
    """A run's counters for requests, replies, usage and exceptions.

    `exceptions` counts rejected replies and failed tools; `streak` counts consecutive turns with at least one
    exception.
    """

    __slots__ = (
        "answered",
        "asked",
        "exceptions",
        "longest_streak",
        "streak",
        "turns",
        "usage",
    )

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0
        self.exceptions = 0
        self.streak = 0
        self.longest_streak = 0
        self.usage = UsageTotals()
        self.turns: list[TurnUsage] = []

    def saved(self) -> dict[str, object]:
        """Return the counts as values that a checkpoint can store."""
        named = ("asked", "answered", "exceptions", "streak", "longest_streak")
        return {name: getattr(self, name) for name in named} | {"turns": [tuple(turn) for turn in self.turns]}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`."""
        for name, value in saved.items():
            if name != "turns":
                setattr(self, name, value)
        for turn in saved["turns"]:
            self.metered(TurnUsage(*turn))

    def replied(self, usage: TurnUsage) -> None:
        """Count a reply and its usage."""
        self.answered += 1
        self.metered(usage)

    def metered(self, usage: TurnUsage) -> None:
        """Count the usage of a reply that is not one of the agent's turns, such as a summary."""
        self.usage.add(usage)
        self.turns.append(usage)

    def batch(self, *, failed: int) -> None:
        """Count an executed batch's failed calls."""
        self.exceptions += failed

    def turn_ended(self, *, failed: bool) -> None:
        """Count a turn; `failed` is true if a call or the reply failed."""
        self.streak = self.streak + 1 if failed else 0
        self.longest_streak = max(self.longest_streak, self.streak)


class Ended(Exception):  # the end of a run, not an error
    """Raised to end a run; `reason` is its stop reason. Any module in the loop may raise it; only `loop` catches it."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class BudgetName(StrEnum):
    """The four budgets in the harness document §3.4."""

    TOKENS = "budget_tokens"
    COST = "budget_cost"
    SECONDS = "budget_seconds"
    STEPS = "budget_steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """A model's prices in US dollars per million prompt tokens and completion tokens."""

    prompt: Decimal
    completion: Decimal

    def cost(self, prompt: int, completion: int) -> Decimal:
        """Return the cost of this many tokens."""
        return (prompt * self.prompt + completion * self.completion) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A run's limits; None means unlimited.

    `tokens` covers prompts and completions, as reported by the provider or, without a report, as measured. `seconds`
    are counted from the run's first request; `steps` are requests and tool calls. `answer_tokens` is reserved for each
    answer. Costs use `prices`; other models that the run calls (a judge, a summarizer, a higher level) may have their
    own in `model_prices`, keyed by model name.
    """

    tokens: int | None = None
    cost: Decimal | None = None
    seconds: float | None = None
    steps: int | None = None
    answer_tokens: int = 1024
    prices: Prices | None = None
    model_prices: Mapping[str, Prices] = field(default_factory=dict)

    def prices_of(self, model: str) -> Prices | None:
        """Return a model's prices, or None if there are none."""
        return self.model_prices.get(model, self.prices) if self.prices is not None else None

    def __post_init__(self) -> None:
        """Raise `BadInput` for invalid amounts, or for a cost limit or `model_prices` without prices."""
        for name in ("tokens", "cost", "seconds", "steps", "answer_tokens"):
            amount = getattr(self, name)
            if amount is not None and not (amount >= 0 and math.isfinite(amount)):
                raise BadInput(f"budget: {name} must be a non-negative finite number, got {amount!r}")
        if self.cost is not None and self.prices is None:
            raise BadInput("a cost budget requires prices; give the price per million tokens")
        if self.model_prices and self.prices is None:
            raise BadInput("model_prices requires prices too, for the models that it does not list")


@dataclass(frozen=True, slots=True)
class Overspent:
    """An exceeded budget: its name, its usage, the most that the next request may use, and its limit."""

    name: BudgetName
    used: Decimal
    wanted: Decimal
    limit: Decimal

    def __str__(self) -> str:
        """Return the usage and the limit as a sentence."""
        if not self.wanted:
            return f"{self.used.normalize():f} of {self.limit.normalize():f} used"
        return (
            f"{self.used.normalize():f} of {self.limit.normalize():f} used, "
            f"the next request may take {self.wanted.normalize():f}"
        )


_SAVED: Final = ("began", "reserved", "tokens", "cost", "steps", "overshoot")
"""`BudgetTracker` attributes stored in checkpoints."""


class BudgetTracker:
    """Tracks a run's usage against its budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.began: float | None = None
        self.reserved = 0
        self.tokens = 0
        self.cost = Decimal(0)
        self.steps = 0
        self.overshoot = 0
        self.unlimited = all(
            one is None for one in (budget.tokens, budget.cost, budget.seconds, budget.steps)
        )
        """True if nothing is limited, so that no check is needed."""

    def saved(self) -> dict[str, object]:
        """Return the usage as values that a checkpoint can store."""
        return {name: getattr(self, name) for name in _SAVED}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`."""
        for name in _SAVED:
            setattr(self, name, saved[name])

    def begin(self, *, at: float) -> None:
        """Record the first request, which starts the run's clock."""
        if self.began is None:
            self.began = at

    def before_request(
        self, prompt_tokens: int, *, at: float, requests: int = 1, model: str = ""
    ) -> Overspent | None:
        """Return the budget that the next request would exceed; if there is none, reserve the request's tokens.

        `prompt_tokens` is the total for `requests` requests: a summary is requested only if the request after it fits
        too. `model` is the request's model.
        """
        self.begin(at=at)
        answer = self._budget.answer_tokens * requests
        wanted = prompt_tokens + answer
        prices = self._budget.prices_of(model)
        money = prices.cost(prompt_tokens, answer) if prices is not None else Decimal(0)
        found = (
            self._over(BudgetName.TOKENS, self.tokens, wanted, self._budget.tokens)
            or self._over(BudgetName.COST, self.cost, money, self._budget.cost)
            or self._over(
                BudgetName.SECONDS, self.spent(at=at).seconds, 0, self._budget.seconds, reached=True
            )
            or self._over(BudgetName.STEPS, self.steps, requests, self._budget.steps)
        )
        if found is None:
            self.reserved = wanted
        return found

    def _over(
        self,
        name: BudgetName,
        used: float | Decimal,
        wanted: float | Decimal,
        limit: float | Decimal | None,
        *,
        reached: bool = False,
    ) -> Overspent | None:
        if limit is None:
            return None
        total = Decimal(str(used)) + Decimal(str(wanted))
        bound = Decimal(str(limit))
        if total > bound or (reached and total >= bound):
            return Overspent(name, Decimal(str(used)), Decimal(str(wanted)), bound)
        return None

    def replied(self, prompt: int, completion: int, *, model: str = "") -> int:
        """Record an answer; return by how many tokens it exceeded its reservation.

        An empty `model` means the run's own model.
        """
        used = prompt + completion
        over = max(0, used - self.reserved)
        self.tokens += used
        self.overshoot += over
        self.steps += 1
        prices = self._budget.prices_of(model)
        if prices is not None:
            self.cost += prices.cost(prompt, completion)
        return over

    def spent(self, *, at: float) -> Spent:
        """Return the usage so far. Seconds are counted from the first request; the cost is None without prices."""
        seconds = 0.0 if self.began is None else at - self.began
        cost = None if self._budget.prices is None else float(self.cost)
        return Spent(tokens=self.tokens, cost=cost, seconds=seconds, steps=self.steps)

    @property
    def allows_call(self) -> bool:
        """Return whether the step budget allows another tool call."""
        limit = self._budget.steps
        return limit is None or self.steps < limit

    def called(self) -> None:
        """Count an executed tool call."""
        self.steps += 1

    def not_called(self) -> None:
        """Undo `called`, because a person did not allow the call."""
        self.steps -= 1
