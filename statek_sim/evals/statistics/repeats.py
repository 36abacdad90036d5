"""pass^k: how likely k runs of one scenario all pass (tau-bench), estimated without bias from more runs than k."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def pass_power(passes: Sequence[tuple[int, int]], k: int) -> float | None:
    """Return the mean over scenarios of the chance that k runs all pass; each is (passed, of). None: too few runs."""
    if not passes or any(of < k for _, of in passes):
        return None
    return sum(comb(passed, k) / comb(of, k) for passed, of in passes) / len(passes)
