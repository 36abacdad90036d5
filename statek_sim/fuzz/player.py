"""Playing examples: what a worker does with those that it is sent, and what it says about each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from statek_sim import progress
from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.conformance.examples.replies import Written
from statek_sim.conformance.examples.scenarios import scenario as example
from statek_sim.conformance.randomised import differences_of, scenario_of
from statek_sim.errors import BadInput, StatekSimError, Untimely
from statek_sim.explore.agent_variation import AGENT_INVARIANTS
from statek_sim.explore.invariants import BUILT_IN, Violation
from statek_sim.explore.subject import Subject
from statek_sim.fuzz.numbers import Numbers
from statek_sim.fuzz.shape import digest_of, shape_of, steps_of
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Profile, Scenario

PROFILE: Final[Profile] = "1.4"
"""The profile of drawn examples where no real package says another."""

DIFFERS: Final = "differs-from-statek"
"""What is found where the real package does something else, without any deviation."""

EVERY: Final = 50
"""Every so manyth example is played twice."""

STATEKS: Final = frozenset(
    {
        "no-claim-leaked",
        "handlers-at-least-once",
        "limits-hold",
        "every-job-ends-or-waits",
        "the-system-converges",
    }
)
"""Invariants that STATEK breaks by itself, and the profiles with it: of drawn examples they are not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Numbers that lead to a run: `scenario` is a place among the user's, None: it is drawn with `numbers`.

    Behind their end numbers are drawn from `tail`. `dice` choose deviations among those that the scenario has occasion
    for.
    """

    scenario: int | None = None
    numbers: tuple[int, ...] = ()
    tail: int | None = None
    dice: tuple[int, ...] = ()
    twice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an example, with all its numbers: it departs so often, and `runs` were played for it."""

    example: Example
    shape: str
    steps: frozenset[str]
    wrong: tuple[Violation, ...] = ()
    departs: int = 0
    runs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Plays examples; `subjects` are the user's scenarios, none: examples are drawn.

    `own` are names of the user's invariants, `ignored` of those that nobody asks for, `python` an interpreter that has
    statek.
    """

    subjects: tuple[tuple[Scenario, Profile], ...] = ()
    own: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    profile: Profile = PROFILE
    python: str | None = None
    folder: str = "found"

    def __call__(self, examples: Sequence[Example]) -> list[Outcome]:
        """Play each of them."""
        return [self.play(example) for example in examples]

    def play(self, given: Example) -> Outcome:
        """Play one example."""
        progress.afresh()
        subject, written, full = self.subject(given)
        try:
            deviations = self.deviations(subject, full)
        except StatekSimError:
            # What an application can do to its jobs at a wrong moment is refused: there is no run.
            return Outcome(example=full, shape="refused", steps=frozenset())
        except Exception:  # noqa: BLE001  # a bug of the runtime's, and asking for it names it
            return Outcome(example=full, shape="fails", steps=frozenset({"fails"}), wrong=subject.wrong())
        return self._played(subject, written, full, deviations)

    def subject(self, given: Example) -> tuple[Subject, Written | None, Example]:
        """Return what an example is about, as it is written where it is drawn, and the example with all its numbers."""
        if given.scenario is not None:
            scenario, profile = self.subjects[given.scenario]
            return self._subject(scenario, profile), None, given
        chance = None if given.tail is None else random.Random(given.tail)
        numbers = Numbers(given.numbers, chance)
        written = example(numbers)
        full = Example(numbers=tuple(numbers.taken), dice=given.dice, twice=given.twice)
        name = f"fuzz-{digest_of([str(full.numbers)])[:8]}"
        return self._subject(scenario_of(written, name, self.profile), self.profile), written, full

    def deviations(self, subject: Subject, example: Example) -> tuple[Deviation, ...]:
        """Return what the dice of an example choose."""
        singles = subject.singles if example.dice else ()
        return tuple(dict.fromkeys(singles[die % len(singles)] for die in example.dice)) if singles else ()

    def wrong(self, subject: Subject, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with a run, without what nobody asks for."""
        return tuple(broken for broken in subject.wrong(deviations) if broken.invariant not in self.ignored)

    def repeats(self, subject: Subject, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return how two runs that depart alike differ."""
        return subject.asked.repeated(subject.asked.played(deviations), deviations)

    def differences(self, written: Written, name: str) -> tuple[Violation, ...]:
        """Return how a drawn example differs from the real package, where there is one."""
        if self.python is None:
            return ()
        peer, profile = _peer(self.python)
        found = differences_of(peer, profile, written, name)
        return tuple(
            Violation(
                DIFFERS,
                f"{first.field}: {first.reference!r} here, {first.installed!r} on STATEK {peer.version}",
            )
            for first in found[:1]
        )

    def _subject(self, scenario: Scenario, profile: Profile) -> Subject:
        return Subject(scenario, profile=profile, invariants=self.own, folder=self.folder)

    def _played(
        self, subject: Subject, written: Written | None, full: Example, deviations: tuple[Deviation, ...]
    ) -> Outcome:
        wrong: tuple[Violation, ...] = ()
        runs = 1
        try:
            seen = subject.asked.played(deviations)
            shape = shape_of(seen.events)
            runs += bool(deviations)
            if full.twice:
                runs += 1
                wrong = subject.asked.repeated(seen, deviations)
        except Untimely:
            return Outcome(example=full, shape="refused", steps=frozenset())
        except Exception:  # noqa: BLE001  # a bug of the runtime's: the next line names it
            shape = ("fails",)
        wrong += self.wrong(subject, deviations)
        if written is not None and not deviations:
            wrong += self.differences(written, subject.scenario.id)
        return Outcome(
            example=full,
            shape=digest_of(shape),
            steps=frozenset(steps_of(shape)),
            wrong=wrong,
            departs=len(deviations),
            runs=runs + 1,
        )


def asked(*, drawn: bool, ignored: Sequence[str]) -> frozenset[str]:
    """Return the invariants that nobody asks for; BadInput for one that does not exist."""
    known = (*BUILT_IN, *AGENT_INVARIANTS)
    for name in ignored:
        if name not in known:
            raise BadInput(f"--ignore {name!r}: expected one of {', '.join(known)}")
    return frozenset(ignored) | (STATEKS if drawn else frozenset())


_OPEN: Final[dict[str, Peer]] = {}
"""The real packages that this process has open; they end when it does."""


def _peer(python: str) -> tuple[Peer, Profile]:
    if python not in _OPEN:
        _OPEN[python] = Peer(python)
    return _OPEN[python], profile_of_peer(_OPEN[python])


def as_dict(example: Example) -> dict[str, Any]:
    """Return an example as a corpus keeps it."""
    return {"scenario": example.scenario, "numbers": list(example.numbers), "dice": list(example.dice)}


def from_dict(document: object) -> Example:
    """Return a kept example; raises ValueError for what is none."""
    if not isinstance(document, dict) or document.keys() != {"scenario", "numbers", "dice"}:
        raise ValueError("expected scenario, numbers and dice")
    scenario, numbers, dice = document["scenario"], document["numbers"], document["dice"]
    whole = [*numbers, *dice, *([] if scenario is None else [scenario])]
    if not all(type(number) is int and number >= 0 for number in whole):
        raise ValueError("expected whole numbers from 0")
    return Example(scenario=scenario, numbers=tuple(numbers), dice=tuple(dice))
