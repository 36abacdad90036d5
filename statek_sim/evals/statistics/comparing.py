"""Is the difference between two arms real? Yes, no, or: these runs cannot tell, and so many would.

That arms are alike is said of scenarios like these, so scenarios are counted, not runs: a kind of scenario that was not
run may differ wholly. Wilson's interval of the share of scenarios that differ has to stay within the margin, which
takes 73 scenarios without any that does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.evals.statistics.clusters import cluster_interval
from statek_sim.evals.statistics.paired import ALPHA, MARGIN, Discordance, discordance, mcnemar, pairs_needed
from statek_sim.intervals import wilson

Answer = Literal["different", "different here", "alike", "cannot tell", "not exercised"]
_NOTHING: Final = ("cannot tell", "not exercised")

Pairs = Sequence[Sequence[tuple[bool, bool]]]
"""Per scenario, per seed: whether each of the two arms passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two arms. `p` is exact McNemar's, `adjusted` the same after Holm, for as many comparisons as were made.

    `difference`: by how much more often the first arm passes; `interval` is its 95 % one, by scenarios. `needed` is the
    number of pairs that would tell, where these do not; None where they do, or where no affordable number would.
    `answer` is "different here" when these scenarios differ, and too few of them to say it of scenarios like these, and
    "not exercised" when all runs of both arms were the same, turn by turn: what they differ in never acted.
    """

    first: str
    second: str
    seen: Discordance
    p: float
    adjusted: float
    interval: tuple[float, float]
    answer: Answer
    needed: int | None

    @property
    def enough(self) -> bool:
        """Whether these runs tell."""
        return self.answer not in _NOTHING


def compared(
    arms: Mapping[tuple[str, str], Pairs], *, same: Collection[tuple[str, str]] = ()
) -> tuple[Comparison, ...]:
    """Return all comparisons of an experiment; `same`: those whose runs were the same, turn by turn."""
    seen = {names: discordance(pair for group in pairs for pair in group) for names, pairs in arms.items()}
    values = {names: mcnemar(outcomes.first, outcomes.second) for names, outcomes in seen.items()}
    adjusted = holm(values)
    return tuple(
        _comparison(names, arms[names], seen[names], values[names], adjusted[names], same=names in same)
        for names in arms
    )


def _comparison(
    names: tuple[str, str], pairs: Pairs, seen: Discordance, p: float, adjusted: float, *, same: bool
) -> Comparison:
    interval = cluster_interval(
        [[float(first) - float(second) for first, second in group] for group in pairs]
    ) or (
        -1.0,
        1.0,
    )
    answer = "not exercised" if same else _answer(pairs, adjusted, interval)
    return Comparison(
        first=names[0],
        second=names[1],
        seen=seen,
        p=p,
        adjusted=adjusted,
        interval=interval,
        answer=answer,
        needed=pairs_needed(seen) if answer == "cannot tell" else None,
    )


def _answer(pairs: Pairs, adjusted: float, interval: tuple[float, float]) -> Answer:
    if adjusted <= ALPHA:
        # Runs of one scenario alone can make McNemar sure; whether other scenarios would say so is another question.
        return "different here" if interval[0] <= 0 <= interval[1] else "different"
    most = wilson(sum(map(_differs, pairs)), len(pairs))
    rare = most is not None and most[1] <= MARGIN
    return "alike" if rare and interval[0] > -MARGIN and interval[1] < MARGIN else "cannot tell"


def _differs(group: Sequence[tuple[bool, bool]]) -> bool:
    """Return whether the arms differ on one scenario by more than the margin; of few runs, any that differs does it."""
    return abs(discordance(group).difference) > MARGIN


def holm(values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return p values made larger so that all of them together give a false alarm no more often than one would."""
    found: dict[tuple[str, str], float] = {}
    largest = 0.0
    for at, (names, p) in enumerate(sorted(values.items(), key=lambda item: (item[1], item[0]))):
        largest = max(largest, min(1.0, p * (len(values) - at)))
        found[names] = largest
    return found
