"""A history on its way to becoming shorter: its units, what may still be touched, and what was done so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace

from statek_sim.agent.context.units import Count, Unit, open_from, recent_from
from statek_sim.agent.effects import SideModel, TextWanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What has to come out: at most `room` tokens of messages, and `target` where a step has to act at all.

    `prompt_room` are the tokens of a whole prompt; `pinned`, `summary` and `max_summary` are those of the settings.
    """

    room: int
    target: int
    prompt_room: int
    count: Count
    pinned: tuple[str, ...] = ()
    summary: SideModel | None = None
    max_summary: int
    last: bool = False
    """Whether this is the last round, in which all but what has to be answered now may be touched."""

    @property
    def enough(self) -> int:
        """Tokens at which nothing is summarised: half way from the target to what there is room for.

        Where clearing leaves more it would be due again with the next turn, and each time the prefix in the cache is
        lost.
        """
        return (self.target + self.room) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Units before `recent` may be touched; the counts are of results, turns and messages that were."""

    units: tuple[Unit, ...]
    recent: int
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0
    told: tuple[str, ...] = ()
    """What was done, in words, for the trace."""

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(unit.tokens for unit in self.units)

    def said(self, what: str) -> Past:
        """Return it with one thing more that was done."""
        return self if what in self.told else replace(self, told=(*self.told, what))

    def with_units(self, units: Sequence[Unit]) -> Past:
        """Return it with these units; what may be touched ends where it did, whatever is gone before that."""
        made = tuple(units)
        if len(made) == len(self.units):
            return replace(self, units=made)
        fixed = {id(unit) for unit in self.units[self.recent :]}
        recent = next((at for at, unit in enumerate(made) if id(unit) in fixed), len(made))
        return replace(self, units=made, recent=recent)

    def without(self, lost: Collection[int], note: Unit | None = None) -> Past:
        """Return it without the units at these positions; `note` stands where the first of them stood.

        A message between two turns of the model stays where its loss would put them side by side, which Gemini refuses.
        """
        at = min(lost, default=len(self.units))
        lost = _loosened(self.units, lost, bridge=at if note is not None else None)
        kept: list[Unit] = []
        recent = 0
        for position, unit in enumerate(self.units):
            if position == self.recent:
                recent = len(kept)
            if position == at and note is not None:
                kept.append(note)
                recent += position >= self.recent
            if position not in lost:
                kept.append(unit)
        if self.recent >= len(self.units):
            recent = len(kept)
        return replace(self, units=tuple(kept), recent=recent)

    def in_last_round(self) -> Past:
        """Return it with everything touchable but what has to be answered now."""
        return replace(self, recent=open_from(self.units))


Summarising = Generator[TextWanted, str | None, Past]
"""A step that needs a model: it yields what it wants and is sent the text, None where there is none."""

Step = Callable[[Past, Goal], Past | Summarising]
"""One way to make a history shorter; any plain callable is one."""


def past_of(units: Sequence[Unit], keep: int) -> Past:
    """Return a history before anything was done; the newest `keep` turns may not be touched."""
    return Past(units=tuple(units), recent=recent_from(units, keep))


def _loosened(units: Sequence[Unit], lost: Collection[int], bridge: int | None) -> set[int]:
    """Return the positions that can be lost without putting two turns of the model side by side."""
    gone = set(lost)
    for position in sorted(lost):
        if units[position].kind in ("turn", "stray"):
            continue
        before = next((at for at in range(position - 1, -1, -1) if at not in gone), None)
        after = next((at for at in range(position + 1, len(units)) if at not in gone), None)
        if before is None or after is None or (bridge is not None and before < bridge < after):
            continue
        if len(units[before].messages) == 1 and units[before].kind == units[after].kind == "turn":
            gone.discard(position)
    return gone
