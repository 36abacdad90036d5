"""Wilson's confidence interval for a proportion."""

from __future__ import annotations

import math
from typing import Final

Z: Final = 1.959963984540054
"""Half the width of a normal distribution's 95 % interval, in standard deviations."""


def wilson(hits: int, of: int) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval for the proportion `hits / of`, or None if `of` is 0."""
    if not of:
        return None
    share, square = hits / of, Z * Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)
