"""From counts to rates: a Beta over scenarios that makes counts of runs likely, and how sure that is.

A run with so many turns ends well when no turn fails. So `good` of `runs` with `turns` turns each are binomial with
(1 - q) ** turns, q the scenario's propensity, which is Beta(a, b) over scenarios. The likelihood is summed over a grid
of propensities; a and b are looked for on a grid of mean and spread. The standard library is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from statek_sim.evals.models.chance import beta_below

_POINTS: Final = 64
LEAST, MOST = 0.001, 0.99
"""Means that are looked at."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Runs of one scenario: `good` of `runs` ended well, with `turns` turns in which they could have failed."""

    good: int
    runs: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBeta:
    """A Beta over scenarios, the 95 % interval of its mean, and each scenario's own propensity, given its counts."""

    a: float
    b: float
    interval: tuple[float, float]
    own: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean propensity."""
        return self.a / (self.a + self.b)


def _grid() -> list[float]:
    """Return propensities, close together at both ends, where U-shaped Betas have their weight."""
    return [_share(-9.5 + 19 * at / (_POINTS - 1)) for at in range(_POINTS)]


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


GRID: Final = tuple(_grid())
_EDGES: Final = tuple((low * high) ** 0.5 for low, high in pairwise(GRID))
"""Between two points of the grid; what is left of the first and right of the last belongs to these."""


def fit_beta(counts: Sequence[Counted]) -> FittedBeta:
    """Return the Beta that makes the counts of scenarios most likely; `ValueError` without any."""
    known = [count for count in counts if count.runs and count.turns]
    if not known:
        raise ValueError("nothing was counted; expected runs of one scenario at least")
    chances = [_chances(count) for count in known]
    means = [_logit(LEAST) + (_logit(MOST) - _logit(LEAST)) * at / 31 for at in range(32)]
    spreads = [0.1 * 1.6**at for at in range(14)]
    found: list[tuple[float, float, float]] = []
    for mean in map(_share, means):
        for spread in spreads:
            weights = _weights(mean * spread, (1 - mean) * spread)
            # A weak wish for scenarios that are neither all alike nor all extreme, so that few counts give an answer.
            prior = -0.5 * (math.log(spread) / 2) ** 2
            found.append((prior + sum(_log_sum(weights, chance) for chance in chances), mean, spread))
    best = max(found)
    _, mean, spread = best
    a, b = mean * spread, (1 - mean) * spread
    weights = _weights(a, b)
    own = [_posterior(weights, _chances(count)) if count.runs and count.turns else mean for count in counts]
    return FittedBeta(a=a, b=b, interval=_interval(found), own=tuple(own))


def _chances(count: Counted) -> list[float]:
    """Return the likelihood of the counts at each point of the grid, scaled to its largest."""
    logs = []
    for q in GRID:
        well = count.turns * math.log1p(-q)
        badly = math.log(max(-math.expm1(well), 1e-300))
        logs.append(count.good * well + (count.runs - count.good) * badly)
    top = max(logs)
    return [math.exp(each - top) for each in logs]


@lru_cache(maxsize=1024)
def _weights(a: float, b: float) -> tuple[float, ...]:
    """Return how much of a Beta lies around each point of the grid, in all 1; every fit looks at the same Betas."""
    below = [0.0, *(beta_below(edge, a, b) for edge in _EDGES), 1.0]
    return tuple([max(high - low, 0.0) for low, high in pairwise(below)])


def _log_sum(weights: Sequence[float], chances: Sequence[float]) -> float:
    return math.log(max(_product(weights, chances), 1e-300))


def _product(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(map(float.__mul__, first, second))


def _posterior(weights: Sequence[float], chances: Sequence[float]) -> float:
    both = [weight * chance for weight, chance in zip(weights, chances, strict=True)]
    return _product(both, GRID) / sum(both)


def _interval(found: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean, all means of the grid as likely before."""
    top = max(candidate[0] for candidate in found)
    mass: dict[float, float] = {}
    for log, mean, _ in found:
        mass[mean] = mass.get(mean, 0.0) + math.exp(log - top)
    return interval_of(sorted(mass.items()))


def interval_of(mass: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the middle 95 % of points with their weights, in their order."""
    total, seen = sum(weight for _, weight in mass), 0.0
    low = high = mass[-1][0]
    for at, (point, weight) in enumerate(mass):
        if seen <= 0.025 * total:
            low = point
        seen += weight
        if seen >= 0.975 * total:
            high = mass[min(at, len(mass) - 1)][0]
            break
    return low, high


def fit_share(likelihood: Callable[[float], float]) -> tuple[float, tuple[float, float]]:
    """Return the mean and the 95 % interval of a share whose log likelihood is given, all shares as likely before."""
    points = [at / 400 for at in range(1, 400)]
    logs = [likelihood(point) for point in points]
    top = max(logs)
    mass = [(point, math.exp(log - top)) for point, log in zip(points, logs, strict=True)]
    total = sum(weight for _, weight in mass)
    return sum(point * weight for point, weight in mass) / total, interval_of(mass)
