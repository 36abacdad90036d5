"""What a run counts while it goes on: requests, answers, failures and their streaks, usage; and that it is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statek_sim.usage.totals import TurnUsage, UsageTotals


class Counters:
    """Running counts of one run. `exceptions` are refused replies and failed tools; a streak is of turns with any."""

    __slots__ = (
        "answered",
        "asked",
        "exceptions",
        "longest_streak",
        "streak",
        "turns",
        "usage",
    )

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0
        self.exceptions = 0
        self.streak = 0
        self.longest_streak = 0
        self.usage = UsageTotals()
        self.turns: list[TurnUsage] = []

    def saved(self) -> dict[str, object]:
        """Return the counts as values that a checkpoint can hold."""
        named = ("asked", "answered", "exceptions", "streak", "longest_streak")
        return {name: getattr(self, name) for name in named} | {"turns": [tuple(turn) for turn in self.turns]}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `saved` returned."""
        for name, value in saved.items():
            if name != "turns":
                setattr(self, name, value)
        for turn in saved["turns"]:
            self.metered(TurnUsage(*turn))

    def replied(self, usage: TurnUsage) -> None:
        """Note an answer."""
        self.answered += 1
        self.metered(usage)

    def metered(self, usage: TurnUsage) -> None:
        """Note what an answer used that is no turn of the agent: a summary."""
        self.usage.add(usage)
        self.turns.append(usage)

    def batch(self, *, failed: int) -> None:
        """Note that a batch of calls was executed, `failed` of which did not return."""
        self.exceptions += failed

    def turn_ended(self, *, failed: bool) -> None:
        """Note a turn, and whether anything in it failed."""
        self.streak = self.streak + 1 if failed else 0
        self.longest_streak = max(self.longest_streak, self.streak)


class Ended(Exception):  # the end of a run, not an error
    """The run is over for this reason: raised anywhere in the loop, caught in `loop` alone."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
