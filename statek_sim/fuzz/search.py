"""The search: rounds of examples, new ones and changed ones of those that were kept, played by any executor.

A round is drawn from the seed, its number and what was kept before it, and taken in as a whole, in order. So what is
found does not depend on who plays it. A round that is interrupted is played again by who goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.executors.executor import Executor
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.explore.invariants import Violation
from statek_sim.fuzz.corpus import Corpus
from statek_sim.fuzz.finds import Find, key_of, made_small
from statek_sim.fuzz.numbers import changed
from statek_sim.fuzz.player import EVERY, Example, Outcome, Player

ROUND: Final = 128
"""Examples of a round."""
PIECE: Final = 16
"""Examples that a worker is sent together: about a third of a second."""
MOST_DICE: Final = 3
_LARGEST: Final = 10_000_000


@dataclass(slots=True)
class Report:
    """What a search found, and how far it came. `killed` are examples that ended a worker, with why."""

    corpus: Corpus
    found: dict[tuple[str, ...], Find] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    played: int = 0
    runs: int = 0
    stopped: bool = False

    @property
    def finds(self) -> tuple[Find, ...]:
        """What was found, the smallest of each kind."""
        return tuple(self.found.values())


def search(
    player: Player,
    report: Report,
    executor: Executor,
    *,
    limits: WatchdogLimits | None,
    go_on: Callable[[], bool],
    most: int | None = None,
) -> Iterator[None]:
    """Play rounds while `go_on` says so, `most` examples at most; note them in `report`, and yield after each."""
    corpus = report.corpus
    while go_on() and (most is None or report.played < most):
        examples = next_round(player, corpus)
        if most is not None:
            examples = examples[: most - report.played]
        for outcome in _played(player, examples, executor, limits, report):
            _take(report, outcome, player)
        corpus.went_on(len(examples), of=ROUND)
        yield


def next_round(player: Player, corpus: Corpus) -> list[Example]:
    """Return the examples of the next round, or what is left of the one that was begun."""
    chance = random.Random(f"{corpus.seed}/{corpus.rounds}")
    kept = corpus.kept[: corpus.began]
    made = [_drawn(player, kept, chance) for _ in range(ROUND)]
    return [
        Example(
            scenario=example.scenario,
            numbers=example.numbers,
            tail=example.tail,
            dice=example.dice,
            twice=place % EVERY == 0,
        )
        for place, example in enumerate(made)
    ][corpus.place :]


def _drawn(player: Player, kept: Sequence[Example], chance: random.Random) -> Example:
    dice = tuple(chance.randint(0, _LARGEST) for _ in range(chance.randint(0, MOST_DICE)))
    tail = chance.randint(0, _LARGEST)
    if not kept or chance.random() < 0.3:
        scenario = chance.randrange(len(player.subjects)) if player.subjects else None
        return Example(scenario=scenario, tail=tail, dice=dice)
    first, second = chance.choice(kept), chance.choice(kept)
    if first.scenario is not None or chance.random() < 0.3:
        return Example(
            scenario=first.scenario, numbers=first.numbers, tail=tail, dice=_dice(first.dice, dice, chance)
        )
    numbers = changed(first.numbers, second.numbers, chance)
    return Example(numbers=numbers, tail=tail, dice=chance.choice((first.dice, dice)))


def _dice(kept: Sequence[int], drawn: Sequence[int], chance: random.Random) -> tuple[int, ...]:
    """Return the dice of a kept example with one more, one fewer, or others in their place."""
    at = chance.randint(0, len(kept))
    together = (*kept[:at], *drawn[:1], *kept[at + chance.randint(0, 1) :])
    return together[:MOST_DICE]


def _played(
    player: Player,
    examples: Sequence[Example],
    executor: Executor,
    limits: WatchdogLimits | None,
    report: Report,
) -> Iterator[Outcome]:
    pieces = [examples[at : at + PIECE] for at in range(0, len(examples), PIECE)]
    with closing(executor.map(player, ((piece,) for piece in pieces), limits=limits)) as came:
        for piece, outcomes in zip(pieces, came, strict=True):
            if not isinstance(outcomes, Killed):
                yield from outcomes
            elif len(piece) == 1:
                report.killed.append(f"{piece[0]}: {outcomes}")
            else:
                # One by one, so that the others are played and the one that ends workers is named.
                yield from _played_alone(player, piece, executor, limits, report)


def _played_alone(
    player: Player,
    piece: Sequence[Example],
    executor: Executor,
    limits: WatchdogLimits | None,
    report: Report,
) -> Iterator[Outcome]:
    with closing(executor.map(player, (([example],) for example in piece), limits=limits)) as came:
        for example, outcomes in zip(piece, came, strict=True):
            if isinstance(outcomes, Killed):
                report.killed.append(f"{example}: {outcomes}")
            else:
                yield from outcomes


def _take(report: Report, outcome: Outcome, player: Player) -> None:
    report.played += 1
    report.runs += outcome.runs
    report.corpus.take(outcome)
    for violation in outcome.wrong:
        key = key_of(outcome, violation)
        known = report.found.get(key)
        if known is None or outcome.departs < len(known.deviations):
            report.found[key] = _small(player, outcome, violation)


def _small(player: Player, outcome: Outcome, violation: Violation) -> Find:
    try:
        return made_small(player, outcome.example, violation)
    except OSError as error:
        raise BadInput(f"{player.folder}: a found case cannot be written: {error.strerror}") from None
