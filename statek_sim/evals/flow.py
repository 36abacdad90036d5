"""Where failures went: each class, whether rescue read the reply, whether the model was corrected, how runs ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from statek_sim.evals.models.failures import ORDER
from statek_sim.evals.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """The turns of one class in one arm, and the runs that had any of them.

    `rescued`: turns that rescue read, by its stage. `nudged`: turns after which the model was corrected, by the
    correction. `runs` had the class at least once, of which `completed` ended by an answer and `passed` were right.
    """

    failure: str
    turns: int
    rescued: tuple[tuple[str, int], ...]
    nudged: tuple[tuple[str, int], ...]
    runs: int
    completed: int
    passed: int


def flow_of(outcomes: Sequence[Outcome]) -> tuple[FlowRow, ...]:
    """Return a row per class that acted, in the order in which classes are asked."""
    return tuple(row for name in ORDER if (row := _row(name.value, outcomes)).turns)


def _row(name: str, outcomes: Sequence[Outcome]) -> FlowRow:
    turns = [turn for one in outcomes for turn in one.turns if turn.failure == name]
    runs = [one for one in outcomes if any(turn.failure == name for turn in one.turns)]
    read = (turn.stage for turn in turns if turn.stage is not None and turn.stage.startswith("read: "))
    return FlowRow(
        failure=name,
        turns=len(turns),
        rescued=_counted(Counter(stage.removeprefix("read: ") for stage in read)),
        nudged=_counted(Counter(turn.nudged for turn in turns if turn.nudged is not None)),
        runs=len(runs),
        completed=sum(one.completed for one in runs),
        passed=sum(one.passed for one in runs),
    )


def _counted(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
