"""How difficult a job's work is taken to be: it chooses the model, and its rises extend the token limit (1.4.1)."""

from __future__ import annotations

from typing import Final

from statek_sim.runtime.agents.job_def import JobDef

LEVELS: Final = ("LOW", "MEDIUM", "HIGH")


class Difficulty:
    """The level that a job's definition or the settings say, and its rises."""

    __slots__ = ("_default", "_job_def", "_raised", "raised_at", "token_extension")

    def __init__(self, job_def: JobDef, default: str) -> None:
        self._job_def = job_def
        self._default = default
        self._raised: str | None = None
        self.token_extension = 0
        self.raised_at: list[int] = []

    @property
    def level(self) -> str:
        """LOW, MEDIUM or HIGH."""
        configured = self._raised or self._job_def.metadata.get("DEFAULT_DIFFICULTY")
        name = (configured or self._default).upper()
        return next((level for level in LEVELS if level.startswith(name)), name)

    def rise(self, tokens: int | None, log_length: int) -> str:
        """Go up one level and return it; `tokens`, if given, go to the limit. Above HIGH it is a RuntimeError."""
        current = self.level
        if current == LEVELS[-1]:
            raise RuntimeError(f"Job is already at high difficulty: {current.lower()}")
        self._raised = LEVELS[LEVELS.index(current) + 1]
        if tokens is not None:
            self.token_extension += tokens
            self.raised_at.append(log_length)
        return self._raised
