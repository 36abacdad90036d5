"""What was found, made small and written as a scenario file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.errors import StatekSimError
from statek_sim.explore.explorer import REPEATS
from statek_sim.explore.invariants import Violation
from statek_sim.explore.reduce import ddmin
from statek_sim.fuzz.player import DIFFERS, Example, Outcome, Player
from statek_sim.scenario.deviation import Deviation

TRIES: Final = 300
"""How often a find may be played to make it small; the smallest by then is written."""


@dataclass(frozen=True, slots=True)
class Find:
    """Something that is wrong: the smallest that shows it, its file, and the command that shows it again."""

    invariant: str
    message: str
    deviations: tuple[Deviation, ...]
    file: str
    command: str


def key_of(outcome: Outcome, violation: Violation) -> tuple[str, ...]:
    """Return what makes two finds one: the invariant and the user's scenario; of a difference, the field."""
    if violation.invariant == DIFFERS:
        return (DIFFERS, violation.message.partition(":")[0])
    return (violation.invariant, str(outcome.example.scenario))


def made_small(player: Player, found: Example, violation: Violation) -> Find:
    """Return a find as small as some hundred tries make it, written into the player's folder."""
    search = _Search(player, violation)
    small = search.smallest(found)
    subject, _, _ = player.subject(small)
    deviations = search.deviations(small)
    if violation.invariant != DIFFERS and search.broken(small, ()) is not None:
        deviations = ()
    elif violation.invariant != DIFFERS and len(deviations) > 1:
        deviations = ddmin(deviations, lambda parts: search.broken(small, parts) is not None)
        deviations = search.alone(small, deviations) or deviations
    small_violation = search.broken(small, deviations) or violation
    file = subject.write(small_violation, deviations).as_posix()
    return Find(
        small_violation.invariant,
        small_violation.message,
        deviations,
        file,
        _command(player, small_violation, file),
    )


def _command(player: Player, violation: Violation, file: str) -> str:
    if violation.invariant == DIFFERS:
        return f"statek-sim compare reference {player.python} {file}"
    return f"statek-sim explore --replay {file}"


class _Search:
    """Plays smaller examples and knows whether they still show what was found."""

    def __init__(self, player: Player, violation: Violation) -> None:
        self._player = player
        self._violation = violation
        self._left = TRIES

    def smallest(self, found: Example) -> Example:
        """Return an example with fewer and smaller numbers and dice."""
        best = found
        for size in (64, 32, 16, 8, 4, 2, 1):
            at = 0
            while at < len(best.numbers) and self._left > 0:
                fewer = best.numbers[:at] + best.numbers[at + size :]
                zeros = (*best.numbers[:at], *[0] * size, *best.numbers[at + size :])[: len(best.numbers)]
                smaller = next(
                    (example for example in map(_with(best), (fewer, zeros)) if self._shows(example)), None
                )
                if smaller is None or smaller == best:
                    at += size
                else:
                    best = smaller
        return best

    def broken(self, example: Example, deviations: Sequence[Deviation]) -> Violation | None:
        """Return how a run with these deviations is wrong in the way that is looked for."""
        self._left -= 1
        try:
            subject, written, _ = self._player.subject(example)
            if self._violation.invariant == DIFFERS:
                wrong = () if written is None else self._player.differences(written, subject.scenario.id)
            elif self._violation.invariant == REPEATS:
                wrong = self._player.repeats(subject, deviations)
            else:
                wrong = self._player.wrong(subject, deviations)
        except (StatekSimError, AssertionError):
            # Numbers that lead to no example.
            return None
        return next((violation for violation in wrong if _alike(violation, self._violation)), None)

    def alone(self, example: Example, deviations: Sequence[Deviation]) -> tuple[Deviation, ...]:
        """Return one deviation that shows it by itself, nothing when there is none or `deviations` are one.

        Leaving one of two out moves the events behind it, and the other one to another event: those of its kind are
        tried from the nearest on.
        """
        if len(deviations) < 2:
            return ()
        subject, _, _ = self._player.subject(example)
        kills = [deviation.kill for deviation in deviations if "kill" in deviation.model_fields_set]
        singles = [deviation for deviation in subject.singles if "kill" in deviation.model_fields_set]
        for kill in kills:
            for single in sorted(singles, key=lambda deviation: abs(deviation.kill - kill)):
                if self._left <= 0:
                    return ()
                if self.broken(example, (single,)) is not None:
                    return (single,)
        return ()

    def deviations(self, example: Example) -> tuple[Deviation, ...]:
        """Return what an example's dice choose; nothing where its undisturbed run fails."""
        try:
            subject, _, _ = self._player.subject(example)
            return self._player.deviations(subject, example)
        except Exception:  # noqa: BLE001  # the runtime's bug is what was found
            return ()

    def _shows(self, example: Example) -> bool:
        return self._left > 0 and self.broken(example, self.deviations(example)) is not None


def _with(example: Example) -> Callable[[tuple[int, ...]], Example]:
    return lambda numbers: Example(scenario=example.scenario, numbers=numbers, dice=example.dice)


def _alike(first: Violation, second: Violation) -> bool:
    if first.invariant == DIFFERS == second.invariant:
        return first.message.partition(":")[0] == second.message.partition(":")[0]
    return first.invariant == second.invariant
