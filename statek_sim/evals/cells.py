"""A cell: one eval in one arm, with the runs of a baseline beside those of now, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from statek_sim.evals.outcome import Outcome, Turn

SHOWN: Final = 5
"""Seeds that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a baseline knows of one run: whether it was right, and a digest of each turn."""

    passed: bool
    turns: tuple[str, ...]


Key = tuple[str, str, int]
"""An arm, an eval and a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The runs of an eval in an arm, each as it was and as it is, by seed."""

    arm: str
    scenario: str
    pairs: tuple[tuple[Kept, Outcome], ...]

    @property
    def lost(self) -> tuple[tuple[Kept, Outcome], ...]:
        """The runs that were right and are wrong."""
        return tuple((kept, after) for kept, after in self.pairs if kept.passed and not after.passed)

    @property
    def won(self) -> int:
        """How many runs were wrong and are right."""
        return sum(after.passed and not kept.passed for kept, after in self.pairs)

    @property
    def worse(self) -> bool:
        """Whether it is right less often than it was."""
        return len(self.lost) > self.won


def cells_of(before: Mapping[Key, Kept], outcomes: Iterable[Outcome]) -> list[Cell]:
    """Return the cells of all runs that a baseline knows, in the order of the runs."""
    pairs: dict[tuple[str, str], list[tuple[Kept, Outcome]]] = {}
    for after in outcomes:
        kept = before.get((after.arm, after.scenario, after.seed))
        if kept is not None:
            pairs.setdefault((after.arm, after.scenario), []).append((kept, after))
    return [Cell(arm=arm, scenario=scenario, pairs=tuple(found)) for (arm, scenario), found in pairs.items()]


def told(cell: Cell) -> Iterator[str]:
    """Yield what became of a cell that is worse: how often it was right, its seeds, and where one went another way."""
    was, now = (sum(run.passed for run in runs) for runs in zip(*cell.pairs, strict=True))
    seeds = ", ".join(str(after.seed) for _, after in cell.lost[:SHOWN])
    more = ", ..." if len(cell.lost) > SHOWN else ""
    often = f"{was} of {len(cell.pairs)} right before, {now} now"
    yield f"{cell.scenario} [{cell.arm}]: {often}; wrong now: seeds {seeds}{more}"
    kept, after = cell.lost[0]
    yield f"  seed {after.seed}: {_first_difference(kept, after)}"
    yield f"  {'; '.join(after.problems) or after.stop}"


def _first_difference(kept: Kept, after: Outcome) -> str:
    for turn, digest in zip(after.turns, kept.turns, strict=False):
        if turn.digest != digest:
            return f"turn {turn.number} is the first that differs: {_did(turn)}"
    if len(after.turns) != len(kept.turns):
        return f"ended after {len(after.turns)} turns ({after.stop}), before after {len(kept.turns)}"
    return "every turn says the same as before: the tools, the world or the check changed"


def _did(turn: Turn) -> str:
    did = f"the model failed by {turn.failure} ({turn.how})" if turn.failure else "the model did it right"
    stage = f", {turn.stage}" if turn.stage else ""
    nudged = f", corrected: {turn.nudged}" if turn.nudged else ""
    return f"{did}{stage}{nudged}"
