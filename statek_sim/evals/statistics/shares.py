"""Shapley shares: what each part of a harness is worth on average over all orders in which parts could be added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial


def subsets(parts: Sequence[str]) -> Iterator[frozenset[str]]:
    """Yield all subsets, small ones first, in an order that is the same everywhere."""
    for size in range(len(parts) + 1):
        for chosen in combinations(parts, size):
            yield frozenset(chosen)


def shapley(parts: Sequence[str], worth: Mapping[frozenset[str], float]) -> dict[str, float]:
    """Return each part's share of what all are worth over none; `KeyError` where the worth of a subset is not known."""
    count = len(parts)
    shares: dict[str, float] = {}
    for part in parts:
        others = [other for other in parts if other != part]
        total = 0.0
        for chosen in subsets(others):
            weight = factorial(len(chosen)) * factorial(count - len(chosen) - 1) / factorial(count)
            total += weight * (worth[chosen | {part}] - worth[chosen])
        shares[part] = total
    return shares
