"""The step limit (document 002, 6.1): a hard limit whose counter is a value, so that it survives a resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statek_sim.errors import BadInput

DOCUMENT_LIMIT: Final = 100
"""`MAX_ITERATIONS` in the document."""


@dataclass(frozen=True, slots=True)
class StepCount:
    """How many steps a task took, over all its runs: what a checkpoint holds."""

    taken: int = 0

    def __post_init__(self) -> None:
        if self.taken < 0:
            raise BadInput(f"a step count is 0 or more, not {self.taken}")


@dataclass(frozen=True, slots=True)
class TooManySteps:
    """The task asked for one step more than it may take; `message` is the document's."""

    most: int

    @property
    def message(self) -> str:
        """What the run ends with."""
        return f"Task exceeded max iterations ({self.most})"


def next_step(count: StepCount, most: int = DOCUMENT_LIMIT) -> StepCount | TooManySteps:
    """Return the count with one step more, or `TooManySteps` when `most` were taken: step 101 of 100 is refused."""
    if most < 1:
        raise BadInput(f"a step limit is 1 or more, not {most}")
    return TooManySteps(most) if count.taken >= most else StepCount(count.taken + 1)
