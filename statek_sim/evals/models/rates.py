"""Rates with their origin: measured, fitted or assumed. A number without one of these words is not let in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from statek_sim.evals.models.chance import beta_quantile
from statek_sim.evals.models.failures import FailureClass

Kind = Literal["measured", "fitted", "assumed"]
Tier = Literal["easy", "medium", "hard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a rate comes from: `n` observations of a `source`, or for what is assumed the reason (`source`, n None)."""

    kind: Kind
    source: str
    n: int | None = None

    def __str__(self) -> str:
        """As reports print it."""
        return "assumed" if self.kind == "assumed" else f"{self.kind}({self.source}, n={self.n})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One number from 0 to 1: how often something happens that a class of failures depends on."""

    name: str
    rate: float
    origin: Origin
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRate:
    """How often a class acts: a `share` of a Beta(a, b) over scenarios, of all tiers or of one.

    Failures of small models are systematic: a scenario has its own propensity, and each turn is a draw with that. The
    share is below 1 where counts know several classes together only: their shares add up to 1.
    """

    failure: FailureClass
    a: float
    b: float
    origin: Origin
    tier: Tier | None = None
    interval: tuple[float, float] | None = None
    share: float = 1.0

    @property
    def mean(self) -> float:
        """The propensity of a scenario, on average."""
        return self.share * self.a / (self.a + self.b)

    @property
    def name(self) -> str:
        """As reports name it."""
        return self.failure.value if self.tier is None else f"{self.failure.value} ({self.tier})"

    def propensity(self, part: float) -> float:
        """Return the propensity that the given part of scenarios stays under, from 0 to 1."""
        return self.share * _propensity(part, self.a, self.b)


@cache
def _propensity(part: float, a: float, b: float) -> float:
    return beta_quantile(part, a, b)
