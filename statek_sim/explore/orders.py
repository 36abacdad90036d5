"""All orders in which jobs that are ready may step, each told apart from those that come to the same.

Depth first over the choices of a run, every run played anew. A sleep set spares orders that only swap two steps which
touch nothing in common: a step that was tried first at a choice need not be tried again after one that it does not
depend on. Beyond the cap orders are drawn by PCT: random priorities, lowered at `depth - 1` random places.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from statek_sim import trace as events
from statek_sim.backends.deviations import Choice
from statek_sim.explore.variation import Undisturbed, Variation, varied
from statek_sim.scenario.events import Deviation
from statek_sim.trace import Event

SHARED: Final = "shared"
"""What stands for everything that several jobs can touch."""

REPLIES: Final = "replies"
"""What stands for a script that looks at the requests it answers."""

_TOUCHING: Final = (
    events.ToolCalled,
    events.WorldChanged,
    events.JobCreated,
    events.HandlerRan,
    events.Notified,
    events.UserMessage,
    events.SubtaskCompleted,
)

Failed = Callable[[tuple[Deviation, ...], Exception], bool]
"""Is told of an order that could not be played to its end and why; returns whether it counts as a played one."""

Footprint = frozenset[str]
"""What a step touched that another job's step may touch too."""

EVERYTHING: Final = frozenset({SHARED, REPLIES})


@dataclass(frozen=True, slots=True)
class Taken:
    """One choice as it was made: the options, the one taken, and who slept."""

    choice: Choice
    picked: int
    asleep: dict[str, Footprint]


@dataclass(slots=True)
class Picker:
    """Makes the choices of one run: `forced` first, then the first job that does not sleep."""

    forced: tuple[int, ...]
    sleep: dict[str, Footprint]
    touches: Touches
    taken: list[Taken] = field(default_factory=list)
    redundant: bool = False
    """Whether every job slept at some choice: this order comes to the same as one that was played."""
    _seen: int = 0

    def __call__(self, choice: Choice, trace: Sequence[Event], /) -> int:
        """Return which job steps next."""
        number = len(self.taken)
        if number >= len(self.forced):
            self._wake(trace)
        else:
            self._seen = choice.after
        picked = self.forced[number] if number < len(self.forced) else self._awake(choice)
        asleep = dict(self.sleep) if number >= len(self.forced) else {}
        self.taken.append(Taken(choice, min(picked, len(choice.jobs) - 1), asleep))
        return self.taken[-1].picked

    def _awake(self, choice: Choice) -> int:
        awake = [place for place, job in enumerate(choice.jobs) if job not in self.sleep]
        self.redundant |= not awake
        return awake[0] if awake else 0

    def _wake(self, trace: Sequence[Event]) -> None:
        """Wake those that depend on what has been done since the last choice."""
        for event in trace[self._seen :]:
            touched = self.touches.of(event)
            for job in [job for job, theirs in self.sleep.items() if job == event.job or theirs & touched]:
                del self.sleep[job]
        self._seen = len(trace)


class Touches:
    """What events touch that belongs to more than one job."""

    def __init__(self, base: Undisturbed) -> None:
        scenario = base.scenario
        self._alone = {
            name
            for name, job in scenario.jobs.items()
            if not job.locals and job.parent is None and not scenario.agents[job.agent or ""].tools
        }
        self._watched = any(isinstance(event, events.Waiting | events.Notified) for event in base.events)
        self._live = any(
            reply.said("when") or reply.said("call") for lane in scenario.script.values() for reply in lane
        )

    def of(self, event: Event) -> Footprint:
        """Return what one event touched."""
        if isinstance(event, _TOUCHING):
            return frozenset({SHARED})
        if isinstance(event, events.CodeExecuted) and event.job not in self._alone:
            return frozenset({SHARED})
        if isinstance(event, events.LLMRequested) and self._live:
            return frozenset({REPLIES})
        if isinstance(event, events.StatusChanged) and event.new == "DONE" and self._watched:
            return frozenset({SHARED})
        return frozenset()

    def of_step(self, trace: Sequence[Event], after: int, job: str) -> Footprint:
        """Return what the step touched that `job` began after so many events."""
        found: set[str] = set()
        begun = False
        for event in trace[after:]:
            if event.job != job:
                continue
            if isinstance(event, events.StepStarted):
                if begun:
                    break
                begun = True
            found |= self.of(event)
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Orders:
    """How many orders were played, and how many there are at least; all of them when the two are equal."""

    played: int
    known: int

    @property
    def complete(self) -> bool:
        """Whether every order was played."""
        return self.played >= self.known


def explore_orders(
    base: Undisturbed, most: int, visit: Callable[[tuple[Deviation, ...], Variation], None], failed: Failed
) -> Orders:
    """Play at most `most` orders that differ in what they may come to; `visit` is told of each, the first included.

    An order that cannot be played to its end goes to `failed`, and those that branch off before it are played.
    """
    touches = Touches(base)
    stack: list[tuple[tuple[int, ...], dict[str, Footprint]]] = [((), {})]
    played = 0
    while stack and played < most:
        forced, sleep = stack.pop()
        picker = Picker(forced, dict(sleep), touches)
        trace: Sequence[Event] | None = None
        try:
            with varied(base, (), pick=picker) as variation:
                trace = variation.events
                if not picker.redundant:
                    visit(as_deviations(picker.taken), variation)
                    played += 1
        except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
            played += failed(as_deviations(picker.taken), error)
        if not picker.redundant:
            stack.extend(reversed(_children(forced, picker.taken, touches, trace)))
    return Orders(played, played + len(stack))


def _children(
    forced: tuple[int, ...], taken: Sequence[Taken], touches: Touches, trace: Sequence[Event] | None
) -> list[tuple[tuple[int, ...], dict[str, Footprint]]]:
    """Return the orders that differ from this one at one choice after those that were forced.

    `trace` is None where the run did not come to its end, and its steps may have touched everything.
    """
    found = []
    for number in range(len(forced), len(taken)):
        at = taken[number]
        before = tuple(one.picked for one in taken[:number])
        first = at.choice.jobs[at.picked]
        touched = EVERYTHING if trace is None else touches.of_step(trace, at.choice.after, first)
        sleep = {**at.asleep, first: touched}
        for place, job in enumerate(at.choice.jobs):
            if place == at.picked or job in at.asleep:
                continue
            found.append(((*before, place), {name: prints for name, prints in sleep.items() if name != job}))
            # What its step touches is not known before it was played: maybe everything.
            sleep[job] = EVERYTHING
    return found


def as_deviations(taken: Iterable[Taken]) -> tuple[Deviation, ...]:
    """Return the choices that were made otherwise than undisturbed."""
    return tuple(
        Deviation(choose=number, first=one.choice.jobs[one.picked])
        for number, one in enumerate(taken, 1)
        if one.picked
    )


# -- beyond the cap ------------------------------------------------------------------------------------------------


def runs_needed(jobs: int, choices: int, depth: int, probability: float) -> int:
    """Return how many PCT runs find a bug of this depth with this probability: each does with 1 / (n k^(d-1))."""
    each = 1 / (max(jobs, 1) * max(choices, 1) ** (depth - 1))
    return 1 if each >= 1 else math.ceil(math.log(1 - probability) / math.log(1 - each))


def probability_of(jobs: int, choices: int, depth: int, runs: int) -> float:
    """Return the least probability with which so many PCT runs find a bug of this depth."""
    each = 1 / (max(jobs, 1) * max(choices, 1) ** (depth - 1))
    return float(1 - (1 - each) ** runs)


class Priorities:
    """PCT's choices: the job of the highest priority, which falls below all others at `depth - 1` random places."""

    def __init__(self, seed: int, choices: int, depth: int) -> None:
        self._random = random.Random(seed)
        self._changes = set(self._random.sample(range(choices), min(depth - 1, choices)))
        self._priority: dict[str, float] = {}
        self.taken: list[Taken] = []

    def __call__(self, choice: Choice, _trace: Sequence[Event], /) -> int:
        """Return which job steps next."""
        for job in choice.jobs:
            self._priority.setdefault(job, 1 + self._random.random())
        picked = max(range(len(choice.jobs)), key=lambda place: self._priority[choice.jobs[place]])
        if len(self.taken) in self._changes:
            self._priority[choice.jobs[picked]] = -len(self.taken)
            picked = max(range(len(choice.jobs)), key=lambda place: self._priority[choice.jobs[place]])
        self.taken.append(Taken(choice, picked, {}))
        return picked
