"""Intervals that know that runs of one scenario are alike: scenarios are drawn again, not runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

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


def icc(clusters: Sequence[Sequence[float]]) -> float | None:
    """Return how alike runs of one scenario are, 0 to 1, by analysis of variance; None where it has no meaning."""
    kept = [list(values) for values in clusters if values]
    total = sum(map(len, kept))
    if len(kept) < 2 or total <= len(kept):
        return None
    grand = sum(map(sum, kept)) / total
    between = sum(len(values) * (sum(values) / len(values) - grand) ** 2 for values in kept) / (len(kept) - 1)
    within = sum((value - sum(values) / len(values)) ** 2 for values in kept for value in values) / (
        total - len(kept)
    )
    size = (total - sum(len(values) ** 2 for values in kept) / total) / (len(kept) - 1)
    bottom = between + (size - 1) * within
    return None if bottom == 0 else max(0.0, (between - within) / bottom)


def effective_runs(clusters: Sequence[Sequence[float]]) -> float | None:
    """Return how many independent runs these are worth: runs of one scenario repeat what the first one said."""
    alike = icc(clusters)
    total = sum(map(len, clusters))
    if alike is None:
        return None
    return total / (1 + (total / len(clusters) - 1) * alike)
