"""How alike two texts are, from 0 to 1."""

from __future__ import annotations

from typing import Final

from rapidfuzz.distance import Indel

_HEAD: Final = 2_000
"""Characters of the beginning and of the end that are compared of a long text: the work is bounded."""


def similarity(one: str, other: str) -> float:
    """Return how alike two texts are. Equal ones are 1, and the order does not count."""
    if one == other:
        return 1.0
    longer = max(len(one), len(other))
    if min(len(one), len(other)) < longer / 2:
        # At most two thirds can be in common; the exact number does not matter.
        return round(2 * min(len(one), len(other)) / (len(one) + len(other)) * 0.99, 6)
    alike = Indel.normalized_similarity(_bounded(one), _bounded(other))
    # What was not compared may differ: two different texts are never said to be equal.
    return round(min(alike, 0.999_999), 6)


def _bounded(text: str) -> str:
    return text if len(text) <= 2 * _HEAD else text[:_HEAD] + text[-_HEAD:]
