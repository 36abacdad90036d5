"""A benchmark entry: the measurement, the peer and the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class EntryRecord(TypedDict):
    """An entry as stored in `bench.json`."""

    name: str
    peer: str
    unit: str
    ours: float
    theirs: float | None
    ratio: float | None
    goal: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A measurement; `ours` and `theirs` are medians, in `unit`.

    `peer` identifies `theirs`: the real package, another of our measurements, or `-` for none.
    `ratio` is how many times better ours is than theirs, above 1 if better. `goal` is the minimum
    `ratio` or, without a ratio, the maximum for `ours`; None if there is no goal.
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
        """Whether the goal is reached, or None if there is no goal."""
        if self.goal is None:
            return None
        return self.ours <= self.goal if self.ratio is None else self.ratio >= self.goal

    def record(self) -> EntryRecord:
        """Return the entry as stored in `bench.json`, rounded to six significant digits."""
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
