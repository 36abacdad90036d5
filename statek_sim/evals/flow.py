"""Where failures went: each class, whether rescue read the reply, whether the model was corrected, how runs ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from statek_sim.evals.models.failures import ORDER
from statek_sim.evals.outcome import Outcome, Turn

_READ: Final = "read: "


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
    turns = [turn for outcome in outcomes for turn in outcome.turns if turn.failure == name]
    runs = [outcome for outcome in outcomes if any(turn.failure == name for turn in outcome.turns)]
    read = (stage for turn in turns if (stage := _read_by(turn)) is not None)
    return FlowRow(
        failure=name,
        turns=len(turns),
        rescued=_counted(Counter(read)),
        nudged=_counted(Counter(turn.nudged for turn in turns if turn.nudged is not None)),
        runs=len(runs),
        completed=sum(outcome.completed for outcome in runs),
        passed=sum(outcome.passed for outcome in runs),
    )


def _counted(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


class Path(NamedTuple):
    """A way that failed turns went: the class, the stage of rescue that read them, the correction, how the run ended.

    `rescued` and `nudged` are None for turns that nothing read or corrected.
    """

    failure: str
    rescued: str | None
    nudged: str | None
    end: Literal["right", "wrong answer", "no answer"]


def paths_of(outcomes: Iterable[Outcome]) -> tuple[tuple[Path, int], ...]:
    """Return the ways of all failed turns, each with how many went it: by class, the most frequent first."""
    counts = Counter(
        Path(turn.failure, _read_by(turn), turn.nudged, _end(outcome))
        for outcome in outcomes
        for turn in outcome.turns
        if turn.failure is not None
    )
    order = [name.value for name in ORDER]
    return tuple(
        sorted(counts.items(), key=lambda entry: (order.index(entry[0].failure), -entry[1], repr(entry[0])))
    )


def _read_by(turn: Turn) -> str | None:
    read = turn.stage is not None and turn.stage.startswith(_READ)
    return (turn.stage or "").removeprefix(_READ) if read else None


def _end(outcome: Outcome) -> Literal["right", "wrong answer", "no answer"]:
    if outcome.passed:
        return "right"
    return "wrong answer" if outcome.completed else "no answer"
