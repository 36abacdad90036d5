"""Plays all orders of ready jobs or calls, except equivalent orders.

The search is depth-first over a run's choices; each run is played from the start. If the objects that steps touch are
known, sleep sets skip orders that only swap two independent steps. Beyond a limit, orders are drawn by PCT: jobs have
random priorities, which are lowered at `depth - 1` random points.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.backends.deviation_plan import Choice
from statek_sim.explore.player import Footprint, Player
from statek_sim.scenario.events import Deviation
from statek_sim.trace import Event, StepStarted

Visit = Callable[[tuple[Deviation, ...], Any], None]
"""Receives a played run and its deviations."""

Failed = Callable[[tuple[Deviation, ...], Exception], bool]
"""Receives an order that could not be played to the end, and the error; returns whether the order counts as played."""

Touched = Callable[[Event], Footprint]
"""Returns the shared objects that an event touches."""

SHARED: Final = "shared"
"""Represents all objects that several jobs can touch."""

REPLIES: Final = "replies"
"""Represents a script in which replies depend on requests."""

EVERYTHING: Final = frozenset({SHARED, REPLIES})


@dataclass(frozen=True, slots=True)
class Taken:
    """A choice made in a run: the options, the index of the chosen option, and the jobs in the sleep set."""

    choice: Choice
    picked: int
    asleep: dict[str, Footprint]


class _Choosing:
    """Records a run's choices."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The choices that differ from those in the base run."""
        return tuple(
            Deviation(choose=number, first=one.choice.jobs[one.picked])
            for number, one in enumerate(self.taken, 1)
            if one.picked
        )


class Picker(_Choosing):
    """Makes the `forced` choices first, then always chooses the first job that is not in the sleep set."""

    def __init__(self, forced: tuple[int, ...], sleep: dict[str, Footprint], touched: Touched | None) -> None:
        super().__init__()
        self._forced = forced
        self._sleep = sleep
        self._touched = touched
        self.redundant = False
        """Whether all jobs were asleep at some choice, which means that an equivalent order was already played."""
        self._seen = 0

    def __call__(self, choice: Choice, trace: Sequence[Event], /) -> int:
        """Return the index of the job that steps next."""
        number = len(self.taken)
        if number >= len(self._forced):
            self._wake(trace)
        else:
            self._seen = choice.after
        picked = self._forced[number] if number < len(self._forced) else self._awake(choice)
        asleep = dict(self._sleep) if number >= len(self._forced) else {}
        self.taken.append(Taken(choice, min(picked, len(choice.jobs) - 1), asleep))
        return self.taken[-1].picked

    def _awake(self, choice: Choice) -> int:
        awake = [place for place, job in enumerate(choice.jobs) if job not in self._sleep]
        self.redundant |= not awake
        return awake[0] if awake else 0

    def _wake(self, trace: Sequence[Event]) -> None:
        """Remove jobs from the sleep set that depend on events since the last choice."""
        if self._touched is None:
            return
        for event in trace[self._seen :]:
            touched = self._touched(event)
            for job in [job for job, theirs in self._sleep.items() if job == event.job or theirs & touched]:
                del self._sleep[job]
        self._seen = len(trace)


def _touched_by_step(touched: Touched, trace: Sequence[Event], after: int, job: str) -> Footprint:
    """Return the objects touched by the next step of `job` after an event; `after` is the event's number."""
    found: set[str] = set()
    begun = False
    for event in trace[after:]:
        if event.job != job:
            continue
        if isinstance(event, StepStarted):
            if begun:
                break
            begun = True
        found |= touched(event)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Orders:
    """The number of played orders and the number of known orders, which are equal if all orders were played."""

    played: int
    known: int

    @property
    def complete(self) -> bool:
        """Whether every order was played."""
        return self.played >= self.known


def explore_orders(player: Player, most: int, visit: Visit, failed: Failed) -> Orders:
    """Play at most `most` inequivalent orders; call `visit` for each, including the first.

    An order that cannot be played to the end is passed to `failed`; orders that branch off earlier are still played.
    """
    touched = player.touched
    stack: list[tuple[tuple[int, ...], dict[str, Footprint]]] = [((), {})]
    played = 0
    while stack and played < most:
        forced, sleep = stack.pop()
        picker = Picker(forced, dict(sleep), touched)
        trace: Sequence[Event] | None = None
        try:
            with player.varied((), pick=picker) as run:
                trace = run.events
                if not picker.redundant:
                    visit(picker.deviations, run)
                    played += 1
        except Exception as error:  # noqa: BLE001  # a bug of the engine's is what we look for
            played += failed(picker.deviations, error)
        if not picker.redundant:
            stack.extend(reversed(_children(forced, picker.taken, touched, trace)))
    return Orders(played, played + len(stack))


def _children(
    forced: tuple[int, ...], taken: Sequence[Taken], touched: Touched | None, trace: Sequence[Event] | None
) -> list[tuple[tuple[int, ...], dict[str, Footprint]]]:
    """Return the orders that differ from this one at one choice after the forced choices.

    `trace` is None if the run did not reach the end; in that case, its steps may have touched any object.
    """
    found: list[tuple[tuple[int, ...], dict[str, Footprint]]] = []
    for number in range(len(forced), len(taken)):
        at = taken[number]
        before = tuple(one.picked for one in taken[:number])
        others = [place for place in range(len(at.choice.jobs)) if place != at.picked]
        if touched is None:
            found += [((*before, place), {}) for place in others]
            continue
        first = at.choice.jobs[at.picked]
        prints = EVERYTHING if trace is None else _touched_by_step(touched, trace, at.choice.after, first)
        sleep = {**at.asleep, first: prints}
        for place in others:
            job = at.choice.jobs[place]
            if job in at.asleep:
                continue
            found.append(((*before, place), {name: sleep[name] for name in sleep if name != job}))
            # The step of this job was not played yet, so it may touch any object.
            sleep[job] = EVERYTHING
    return found


# -- random orders -------------------------------------------------------------------------------------------------


def runs_needed(jobs: int, choices: int, depth: int, probability: float) -> int:
    """Return the number of PCT runs needed to find a bug of this depth with this probability.

    Each run finds it with a probability of at least 1 / (jobs * choices ** (depth - 1)).
    """
    each = 1 / (max(jobs, 1) * max(choices, 1) ** (depth - 1))
    return 1 if each >= 1 else math.ceil(math.log(1 - probability) / math.log(1 - each))


def probability_of(jobs: int, choices: int, depth: int, runs: int) -> float:
    """Return the minimum probability with which this many PCT runs find a bug of this depth."""
    each = 1 / (max(jobs, 1) * max(choices, 1) ** (depth - 1))
    return float(1 - (1 - each) ** runs)


class Priorities(_Choosing):
    """Chooses the job with the highest priority (PCT); at `depth - 1` random points, that job gets the lowest."""

    def __init__(self, seed: int, choices: int, depth: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._changes = set(self._random.sample(range(choices), min(depth - 1, choices)))
        self._priority: dict[str, float] = {}

    def __call__(self, choice: Choice, _trace: Sequence[Event], /) -> int:
        """Return the index of the job that steps next."""
        for job in choice.jobs:
            self._priority.setdefault(job, 1 + self._random.random())
        picked = max(range(len(choice.jobs)), key=lambda place: self._priority[choice.jobs[place]])
        if len(self.taken) in self._changes:
            self._priority[choice.jobs[picked]] = -len(self.taken)
            picked = max(range(len(choice.jobs)), key=lambda place: self._priority[choice.jobs[place]])
        self.taken.append(Taken(choice, picked, {}))
        return picked


def draw_orders(
    player: Player, runs: int, depth: int, probability: float, visit: Visit, failed: Failed
) -> float:
    """Play orders with random priorities, enough to find a bug of this depth with this probability, but at most `runs`.

    Returns the minimum probability reached.
    """
    choices = player.base.choices
    jobs, places = len({job for choice in choices for job in choice.jobs}), max(len(choices), 1)
    runs = min(runs, runs_needed(jobs, places, depth, probability))
    for seed in range(runs):
        picker = Priorities(seed, places, depth)
        try:
            with player.varied((), pick=picker) as run:
                visit(picker.deviations, run)
        except Exception as error:  # noqa: BLE001  # a bug of the engine's is what we look for
            failed(picker.deviations, error)
    return probability_of(jobs, places, depth, runs)
