"""One line of the benchmark: what was measured, against whom, and what it should reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class EntryRecord(TypedDict):
    """An entry as `bench.json` holds it."""

    name: str
    peer: str
    unit: str
    ours: float
    theirs: float | None
    ratio: float | None
    goal: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A measured fact; `ours` and `theirs` are medians, in `unit`.

    `peer` says what `theirs` is: the real package, another measurement of ours, or `-` for none.
    `ratio` is how many times better ours is than theirs, above 1 when better. `goal` is the least
    `ratio` to reach or, without a ratio, the most that `ours` may be; None when no goal is set.
    """

    name: str
    peer: str = "-"
    unit: str
    ours: float
    theirs: float | None = None
    ratio: float | None = None
    goal: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached, or None when there is no goal."""
        if self.goal is None:
            return None
        return self.ours <= self.goal if self.ratio is None else self.ratio >= self.goal

    def record(self) -> EntryRecord:
        """Return the entry as `bench.json` holds it, rounded to six significant digits."""
        return EntryRecord(
            name=self.name,
            peer=self.peer,
            unit=self.unit,
            ours=_rounded(self.ours),
            theirs=None if self.theirs is None else _rounded(self.theirs),
            ratio=None if self.ratio is None else _rounded(self.ratio),
            goal=self.goal,
        )


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def rate_entry(*, name: str, peer: str, unit: str, ours: float, theirs: float, goal: float | None) -> Entry:
    """Return an entry where more is better, such as steps per second."""
    return Entry(name=name, peer=peer, unit=unit, ours=ours, theirs=theirs, ratio=ours / theirs, goal=goal)


def time_entry(*, name: str, peer: str, unit: str, ours: float, theirs: float, goal: float | None) -> Entry:
    """Return an entry where less is better, such as seconds."""
    return Entry(name=name, peer=peer, unit=unit, ours=ours, theirs=theirs, ratio=theirs / ours, goal=goal)
