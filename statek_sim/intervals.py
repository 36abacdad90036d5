"""Confidence intervals: Wilson's for a share, Student's for a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

Z: Final = 1.959963984540054
"""Standard deviations on each side of a 95 % interval."""


def wilson(hits: int, of: int) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of a share, or None if `of` is 0."""
    if not of:
        return None
    share, square = hits / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def of_mean(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of a mean; None for fewer than two values, which have no spread."""
    freedom = len(values) - 1
    if freedom < 1:
        return None
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / freedom
    half = student(freedom) * math.sqrt(variance / len(values))
    return mean - half, mean + half


def student(freedom: int) -> float:
    """Return the half width of a 95 % interval in standard errors, for 1 or more degrees of freedom.

    Exact for one and two; from three on by Cornish and Fisher's series (Abramowitz and Stegun, 26.7.5), within two
    thousandths of it.
    """
    if freedom == 1:
        return math.tan(math.pi * 0.475)
    if freedom == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92_160,
    )
    return Z + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, 1))
