"""`statek.task_difficulty` for the reference runtime."""

from __future__ import annotations

from typing import Any, Final

from statek_sim.harness.settings import DIFFICULTY_LABELS
from statek_sim.shim.memo import enum

TaskDifficulty: Final = enum("TaskDifficulty", ["low", "medium", "high"])


def parse_task_difficulty(value: Any) -> Any:
    """Return the difficulty for a label such as `M` or `medium`, or None for None.

    Raises ValueError for other labels.
    """
    if value is None or value in TaskDifficulty.values():
        return value
    level = DIFFICULTY_LABELS.get(str(value).strip().upper())
    if level is None:
        raise ValueError(f"Invalid task difficulty: {value!r}")
    return TaskDifficulty[level.lower()]


def max_task_difficulty(left: Any, right: Any) -> Any:
    """Return the higher difficulty."""
    levels = [*TaskDifficulty.values()]
    return max(left, right, key=levels.index)
