"""What a scenario needs of every limit, read off one run without limits, and the words for it: `needs >= 8`.

Such a run shows everything that limits are held against, at every check. Limits change nothing before they stop a job,
so the smallest limit with which none of these checks fails is exactly what is needed, completions that extend it
included. No search over runs is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.gate.verdict import LimitFigure
from statek_sim.gate.watched_harness import Checks, Counted
from statek_sim.harness.limits import HarnessLimits, LimitName, count_for, effective_limit

MOST_TURNS: Final = 1_000
"""LLM turns after which a job counts as one that never ends."""


def unlimited(extension: float) -> HarnessLimits:
    """Return limits that stop nothing but what never ends."""
    return HarnessLimits(
        max_turns=MOST_TURNS,
        max_exceptions=None,
        max_consecutive_exceptions=None,
        max_token_usage=None,
        limit_extension_per_completion=extension,
    )


def needed(checks: Checks, limit: LimitName, extension: float) -> int:
    """Return the smallest value with which this limit stops no job, extended as a preset says.

    `checks` are those of a run without limits.
    """
    counts = list(_counts(checks, limit))
    low, high = 0, max((count for _, count in counts), default=0)
    while low < high:
        middle = (low + high) // 2
        enough = all(
            count <= (effective_limit(middle, extension, done, checks.rule) or 0) for done, count in counts
        )
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def needs_said(figures: Sequence[LimitFigure], limit: LimitName) -> str:
    """Return in words what a scenario needs of the limit that stopped it, and of others that would stop it too."""
    needed = next(figure.needed for figure in figures if figure.limit is limit)
    others = [
        f"{figure.limit} >= {figure.needed}"
        for figure in figures
        if figure.too_small and figure.limit is not limit
    ]
    also = f", and {' and '.join(others)}" if others else ""
    return f"needs >= {needed}{also}"


def _counts(checks: Checks, limit: LimitName) -> Iterator[tuple[int | None, int]]:
    """Yield completions and count of every check; tokens that a rise of the difficulty granted count as not used."""
    for counted in (*checks.passed, *(failed for failed, _ in checks.failed)):
        yield counted.num_completions, _count(counted, limit)


def _count(counted: Counted, limit: LimitName) -> int:
    return count_for(
        limit,
        turns=counted.num_turns,
        exceptions=counted.exception_count,
        streak=counted.max_consecutive_exceptions,
        tokens=counted.approx_token_usage - counted.difficulty_token_extension,
    )
