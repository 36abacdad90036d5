"""Statistics of experiments: whether two arms differ, intervals over scenarios, and pass^k.

Runs of one scenario repeat each other, so intervals draw scenarios, not runs; two arms are compared in pairs of the
same scenario and seed.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final, Literal


def pass_power(passes: Sequence[tuple[int, int]], k: int) -> float | None:
    """Return the mean over scenarios of the chance that k runs all pass; each is (passed, of). None: too few runs."""
    if not passes or any(of < k for _, of in passes):
        return None
    return sum(comb(passed, k) / comb(of, k) for passed, of in passes) / len(passes)


SAMPLES: Final = 2_000
LEAST_CLUSTERS: Final = 6
"""Clusters that a 95 % interval takes. Means of clusters that are drawn again lie between the least and the largest
of theirs, and k of these have the true median between them in 1 - 2^(1-k) of all cases: 93.75 % for five.
"""
_TAIL: Final = 0.025


def cluster_interval(clusters: Sequence[Sequence[float]], *, seed: int = 0) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of clusters' values, by drawing clusters with replacement.

    Each cluster is one scenario's runs. None with fewer than `LEAST_CLUSTERS`: nothing tells then how scenarios
    differ, and whatever is possible is the interval.
    """
    kept = [(sum(values), len(values)) for values in clusters if values]
    if len(kept) < LEAST_CLUSTERS:
        return None
    chance = random.Random(f"clusters/{seed}/{len(kept)}")
    means: list[float] = []
    for _ in range(SAMPLES):
        drawn = chance.choices(kept, k=len(kept))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    return means[int(_TAIL * SAMPLES)], means[int((1 - _TAIL) * SAMPLES) - 1]


ALPHA: Final = 0.05
"""Arms differ whose adjusted p is not above this."""


@dataclass(frozen=True, slots=True)
class Discordance:
    """Pairs of runs of which one passed: `first` only the first arm's, `second` only the second's, of `pairs`."""

    first: int
    second: int
    pairs: int

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
    tail, ways = 0, 1
    for at in range(min(first, second) + 1):
        tail += ways
        ways = ways * (count - at) // (at + 1)
    # Whole numbers divided at last: a float of 2**count would be none from 1024 on.
    return min(1.0, float(2 * tail / 2**count))


Answer = Literal["different", "different here", "cannot tell", "not exercised"]
_NOTHING: Final = ("cannot tell", "not exercised")

Pairs = Sequence[Sequence[tuple[bool, bool]]]
"""Per scenario, per seed: whether each of the two arms passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two arms. `p` is exact McNemar's, `adjusted` the same after Holm, for as many comparisons as were made.

    `difference`: by how much more often the first arm passes; `interval` is its 95 % one, by scenarios. `answer` is
    "different here" when these scenarios differ, and too few of them to say it of scenarios like these, and "not
    exercised" when all runs of both arms were the same, turn by turn: what they differ in never acted.
    """

    first: str
    second: str
    seen: Discordance
    p: float
    adjusted: float
    interval: tuple[float, float]
    answer: Answer

    @property
    def enough(self) -> bool:
        """Whether these runs tell."""
        return self.answer not in _NOTHING


def compared(
    arms: Mapping[tuple[str, str], Pairs], *, same: Collection[tuple[str, str]] = ()
) -> tuple[Comparison, ...]:
    """Return all comparisons of an experiment; `same`: those whose runs were the same, turn by turn."""
    seen = {names: discordance(pair for group in pairs for pair in group) for names, pairs in arms.items()}
    values = {names: mcnemar(outcomes.first, outcomes.second) for names, outcomes in seen.items()}
    adjusted = holm(values)
    return tuple(
        _comparison(names, arms[names], seen[names], values[names], adjusted[names], same=names in same)
        for names in arms
    )


def _comparison(
    names: tuple[str, str], pairs: Pairs, seen: Discordance, p: float, adjusted: float, *, same: bool
) -> Comparison:
    interval = cluster_interval(
        [[float(first) - float(second) for first, second in group] for group in pairs]
    ) or (
        -1.0,
        1.0,
    )
    answer = "not exercised" if same else _answer(adjusted, interval)
    return Comparison(
        first=names[0],
        second=names[1],
        seen=seen,
        p=p,
        adjusted=adjusted,
        interval=interval,
        answer=answer,
    )


def _answer(adjusted: float, interval: tuple[float, float]) -> Answer:
    if adjusted <= ALPHA:
        # Runs of one scenario alone can make McNemar sure; whether other scenarios would say so is another question.
        return "different here" if interval[0] <= 0 <= interval[1] else "different"
    return "cannot tell"


def holm(values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return p values made larger so that all of them together give a false alarm no more often than one would."""
    found: dict[tuple[str, str], float] = {}
    largest = 0.0
    for at, (names, p) in enumerate(sorted(values.items(), key=lambda item: (item[1], item[0]))):
        largest = max(largest, min(1.0, p * (len(values) - at)))
        found[names] = largest
    return found
