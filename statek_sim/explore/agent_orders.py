"""Orders of an agent's run: which run goes on first at the same second, and which of several calls ends first.

Depth first over the choices of a run, every run played anew; beyond the cap orders are drawn with random priorities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from statek_sim.backends.deviations import Choice, Picks
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.orders import (
    Failed,
    Orders,
    Priorities,
    Taken,
    as_deviations,
    probability_of,
    runs_needed,
)
from statek_sim.explore.result import Count
from statek_sim.scenario.events import Deviation
from statek_sim.trace import Event

R = TypeVar("R")

Play = Callable[[Picks], R]
"""Plays the undisturbed run with its choices made so."""

Visit = Callable[[tuple[Deviation, ...], R], None]
"""Is told of a run that was played, and where it departs."""


@dataclass(slots=True)
class _Forced:
    """Makes the choices of one run: those that are `forced`, and after them what goes on first undisturbed."""

    forced: tuple[int, ...]
    taken: list[Taken] = field(default_factory=list)

    def __call__(self, choice: Choice, _trace: Sequence[Event], /) -> int:
        number = len(self.taken)
        picked = self.forced[number] if number < len(self.forced) else 0
        self.taken.append(Taken(choice, min(picked, len(choice.jobs) - 1), {}))
        return self.taken[-1].picked


def every_agent_order(
    play: Play[R], visit: Visit[R], failed: Failed, choices: Sequence[Choice], bounds: Bounds
) -> tuple[Count, float | None]:
    """Play all orders under a cap, and random ones beyond it; return how many, and how surely the latter find a bug.

    An order that cannot be played to its end goes to `failed`, and those that branch off before it are played.
    `choices` are those of the undisturbed run; None: all orders were played.
    """
    orders = _agent_orders(play, bounds.orders, visit, failed)
    surely = None if orders.complete else _random_orders(play, choices, visit, failed, bounds)
    return Count(orders.played, orders.known), surely


def _agent_orders(play: Play[R], most: int, visit: Visit[R], failed: Failed) -> Orders:
    """Play at most `most` orders, the undisturbed one first; `visit` is told of each."""
    stack: list[tuple[int, ...]] = [()]
    played = 0
    while stack and played < most:
        forced = stack.pop()
        picker = _Forced(forced)
        try:
            run = play(picker)
        except Exception as error:  # noqa: BLE001  # a bug of the loop's is what we look for
            played += failed(as_deviations(picker.taken), error)
        else:
            played += 1
            visit(as_deviations(picker.taken), run)
        picks = tuple(one.picked for one in picker.taken)
        stack += reversed(
            [
                (*picks[:number], place)
                for number in range(len(forced), len(picks))
                for place in range(1, len(picker.taken[number].choice.jobs))
            ]
        )
    return Orders(played, played + len(stack))


def _random_orders(
    play: Play[R], choices: Sequence[Choice], visit: Visit[R], failed: Failed, bounds: Bounds
) -> float:
    """Play orders with random priorities; return the least probability with which they find a bug."""
    names, places, depth = (
        len({name for choice in choices for name in choice.jobs}),
        max(len(choices), 1),
        bounds.pct_depth,
    )
    runs = min(bounds.pct_runs, runs_needed(names, places, depth, bounds.pct_probability))
    for seed in range(runs):
        picker = Priorities(seed, places, depth)
        try:
            run = play(picker)
        except Exception as error:  # noqa: BLE001  # a bug of the loop's is what we look for
            failed(as_deviations(picker.taken), error)
        else:
            visit(as_deviations(picker.taken), run)
    return probability_of(names, places, depth, runs)
