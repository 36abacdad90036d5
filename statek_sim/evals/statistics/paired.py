"""Two arms on the same scenarios and seeds: exact McNemar, its power, and how many pairs would be enough."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

ALPHA: Final = 0.05
POWER: Final = 0.8
MARGIN: Final = 0.05
"""Two arms are alike when their difference is surely smaller than this."""
MOST: Final = 200_000


@dataclass(frozen=True, slots=True)
class Discordance:
    """Pairs of runs of which one passed: `first` only the first arm's, `second` only the second's, of `pairs`."""

    first: int
    second: int
    pairs: int

    @property
    def different(self) -> int:
        """Pairs that tell the arms apart."""
        return self.first + self.second

    @property
    def difference(self) -> float:
        """The share by which the first arm passes more often."""
        return (self.first - self.second) / self.pairs if self.pairs else 0.0


def discordance(pairs: Iterable[tuple[bool, bool]]) -> Discordance:
    """Count pairs of runs."""
    only_first = only_second = count = 0
    for first, second in pairs:
        count += 1
        only_first += first and not second
        only_second += second and not first
    return Discordance(only_first, only_second, count)


def mcnemar(first: int, second: int) -> float:
    """Return the exact two-sided p of so many discordant pairs each way: a coin's, of their number."""
    count = first + second
    if not count:
        return 1.0
    tail = sum(_ways(count, min(first, second)))
    # Whole numbers divided at last: a float of 2**count would be none from 1024 on.
    return min(1.0, float(2 * tail / 2**count))


def _ways(count: int, most: int) -> Iterator[int]:
    """Yield in how many ways 0, 1, ... up to `most` of `count` can be chosen, each from the one before."""
    ways = 1
    for at in range(most + 1):
        yield ways
        ways = ways * (count - at) // (at + 1)


@cache
def critical(count: int, alpha: float = ALPHA) -> int:
    """Return the most pairs on the rarer side, of `count` discordant ones, at which p is at most alpha; -1 for none."""
    tail, most, bound = 0, -1, Fraction(alpha) * 2**count / 2
    for at, ways in enumerate(_ways(count, count // 2)):
        tail += ways
        if tail > bound:
            break
        most = at
    return most


def power(count: int, share: float, alpha: float = ALPHA) -> float:
    """Return how likely so many discordant pairs tell that one side has this share of them."""
    most = critical(count, alpha)
    if most < 0:
        return 0.0
    return _below(most, count, 1 - share) + _below(most, count, share)


def _below(most: int, count: int, chance: float) -> float:
    """Return the probability of at most so many of `count`, in logarithms: the numbers are large."""
    if chance <= 0.0:
        return 1.0
    if chance >= 1.0:
        return 1.0 if most >= count else 0.0
    log, other = math.log(chance), math.log1p(-chance)
    every = math.lgamma(count + 1)
    return math.fsum(
        math.exp(every - math.lgamma(at + 1) - math.lgamma(count - at + 1) + at * log + (count - at) * other)
        for at in range(most + 1)
    )


@cache
def discordant_needed(share: float, alpha: float = ALPHA) -> int | None:
    """Return how many discordant pairs tell that one side has this share of them; None: too many."""
    if abs(share - 0.5) < 1e-9:
        return None
    low, high = 1, 8
    while power(high, share, alpha) < POWER:
        low, high = high, high * 2
        if high > 4096:
            return _by_normal(share, alpha)
    while high - low > 1:
        middle = (low + high) // 2
        if power(middle, share, alpha) >= POWER:
            high = middle
        else:
            low = middle
    return high


def _by_normal(share: float, alpha: float) -> int | None:
    """Return it by the normal curve, which is as good as the exact one for so many."""
    z = quantile(1 - alpha / 2) + quantile(POWER) * 2 * math.sqrt(share * (1 - share))
    needed = math.ceil((z / (2 * abs(share - 0.5))) ** 2)
    return needed if needed <= MOST else None


def quantile(share: float) -> float:
    """Return the standard normal quantile, by bisection."""
    low, high = -10.0, 10.0
    for _ in range(80):
        middle = (low + high) / 2
        if 0.5 * math.erfc(-middle / math.sqrt(2)) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def pairs_needed(seen: Discordance, alpha: float = ALPHA) -> int | None:
    """Return how many pairs would tell the arms apart that differ as these do; None for more than anybody runs.

    Where they do not differ at all, or evenly, it is the number at which a difference of `MARGIN` would be seen, with
    as many discordant pairs as were.
    """
    rate = max(seen.different / seen.pairs if seen.pairs else 0.0, MARGIN)
    share = seen.first / seen.different if seen.different else 0.5
    if abs(share - 0.5) * 2 * rate < MARGIN:
        share = min(1.0, 0.5 + MARGIN / (2 * rate))
    needed = discordant_needed(round(share, 6), alpha)
    if needed is None:
        return None
    pairs = math.ceil(needed / rate)
    return pairs if pairs <= MOST else None
