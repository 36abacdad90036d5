"""How difficult a task is: the key that picks its model (behaviour 11)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class TaskDifficulty(StrEnum):
    """Three levels, in rising order."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


DIFFICULTY_LABELS: Final[Mapping[str, TaskDifficulty]] = {
    label: difficulty for difficulty in TaskDifficulty for label in (difficulty.name[0], difficulty.name)
}
"""`L`, `LOW`, `M`, ... : every accepted spelling, in upper case."""


def parse_difficulty(label: str) -> TaskDifficulty:
    """Return the difficulty that `label` names: L, M, H, low, medium, high, in any case; else ValueError."""
    try:
        return DIFFICULTY_LABELS[label.strip().upper()]
    except KeyError:
        raise ValueError(f"difficulty {label!r}: expected L, M, H, low, medium or high") from None
