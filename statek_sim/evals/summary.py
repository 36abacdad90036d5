"""The summary of an experiment: numbers per arm and scenario, comparisons, and where failures went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.evals.arms import AGENT, FULL, Arm
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.failures import ORDER
from statek_sim.evals.outcome import Count, Outcome, Tokens, Turn
from statek_sim.evals.statistics import (
    Comparison,
    cluster_interval,
    compared,
    pass_power,
)

TIERS: Final = ("easy", "medium", "hard")
POWERS: Final = (1, 2, 4, 8)
"""The k of pass^k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """One scenario in one arm; `points` is the mean share of what was demanded."""

    runs: int
    completed: int
    passed: int
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """One arm over all scenarios and seeds.

    `completion` and `score` are shares of runs that ended by an answer, and that were right; `interval` is the 95 %
    one of the score, by scenarios. `calls`, `model_calls` and `wasted` are means of a run. `tiers` has the runs that
    were right, and all, of each tier. `seconds` is the real time of all runs of a user's own agent, None for our
    harness.
    """

    arm: Arm
    runs: int
    completion: float
    score: float
    interval: tuple[float, float]
    points: float
    model_calls: float
    calls: float
    wasted: float
    tokens: Tokens
    powers: Mapping[int, float | None]
    flow: tuple[FlowRow, ...]
    tiers: Mapping[str, tuple[int, int]]
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything that reports say."""

    experiment: Experiment
    arms: tuple[ArmSummary, ...]
    cells: Mapping[str, Mapping[str, CellSummary]]
    comparisons: tuple[Comparison, ...]


def summarised(experiment: Experiment, outcomes: Sequence[Outcome]) -> Summary:
    """Return the summary of all runs of an experiment."""
    by_arm: dict[str, list[Outcome]] = {arm.name: [] for arm in experiment.arms}
    for outcome in outcomes:
        by_arm[outcome.arm].append(outcome)
    tiers = {scenario.id: scenario.tier for scenario in experiment.suite}
    arms = tuple(_arm(arm, by_arm[arm.name], tiers) for arm in experiment.arms)
    grouped = {name: by_scenario(runs) for name, runs in by_arm.items()}
    return Summary(
        experiment=experiment,
        arms=arms,
        cells={
            scenario.id: {name: _cell(groups[scenario.id]) for name, groups in grouped.items()}
            for scenario in experiment.suite
        },
        comparisons=_comparisons(experiment.arms, by_arm),
    )


def by_scenario(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Return runs by their scenario, in order."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.scenario, []).append(outcome)
    return found


def _cell(outcomes: Sequence[Outcome]) -> CellSummary:
    return CellSummary(
        runs=len(outcomes),
        completed=sum(outcome.completed for outcome in outcomes),
        passed=sum(outcome.passed for outcome in outcomes),
        points=sum(outcome.score for outcome in outcomes) / len(outcomes),
    )


def _arm(arm: Arm, outcomes: Sequence[Outcome], tiers: Mapping[str, str]) -> ArmSummary:
    count = len(outcomes)
    groups = by_scenario(outcomes).values()
    passes = [[float(outcome.passed) for outcome in group] for group in groups]
    return ArmSummary(
        arm=arm,
        runs=count,
        completion=sum(outcome.completed for outcome in outcomes) / count,
        score=sum(outcome.passed for outcome in outcomes) / count,
        interval=cluster_interval(passes) or (0.0, 1.0),
        points=sum(outcome.score for outcome in outcomes) / count,
        model_calls=sum(outcome.model_calls for outcome in outcomes) / count,
        calls=sum(outcome.calls for outcome in outcomes) / count,
        wasted=sum(outcome.wasted for outcome in outcomes) / count,
        tokens=_tokens(outcomes),
        powers={k: pass_power([(int(sum(group)), len(group)) for group in passes], k) for k in POWERS},
        flow=flow_of(outcomes),
        tiers=_tiers(outcomes, tiers),
        seconds=None if arm.agent is None else sum(outcome.seconds or 0.0 for outcome in outcomes),
    )


def _tiers(outcomes: Sequence[Outcome], tiers: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return how many runs of each tier were right, of how many; tiers without runs are left out."""
    runs = {tier: [run.passed for run in outcomes if tiers[run.scenario] == tier] for tier in TIERS}
    return {tier: (sum(passed), len(passed)) for tier, passed in runs.items() if passed}


def _tokens(outcomes: Sequence[Outcome]) -> Tokens:
    return Tokens(
        measured=_added([outcome.tokens.measured for outcome in outcomes]),
        estimated=_added([outcome.tokens.estimated for outcome in outcomes]),
    )


def _added(counts: Sequence[Count]) -> Count:
    return Count(sum(count.prompt for count in counts), sum(count.completion for count in counts))


def _comparisons(arms: Sequence[Arm], by_arm: Mapping[str, Sequence[Outcome]]) -> tuple[Comparison, ...]:
    """Compare the user's agent, the full harness or the first arm with each of the others, on the same model."""
    arms = [arm for arm in arms if not arm.ideal]
    if len(arms) < 2:
        return ()
    names = [arm.name for arm in arms]
    base = next((name for name in (AGENT, FULL) if name in names), names[0])
    pairs = {
        (base, other.name): [
            [(first.passed, second.passed) for first, second in zip(*groups, strict=True)]
            for groups in zip(
                by_scenario(by_arm[base]).values(), by_scenario(by_arm[other.name]).values(), strict=True
            )
        ]
        for other in arms
        if other.name != base
    }
    return compared(pairs, same=[names for names in pairs if _same(by_arm[names[0]], by_arm[names[1]])])


def _same(group: Sequence[Outcome], other: Sequence[Outcome]) -> bool:
    """Return whether the runs of two arms were the same, turn by turn and token by token."""
    return [run._replace(arm="") for run in group] == [run._replace(arm="") for run in other]


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


def _read_by(turn: Turn) -> str | None:
    read = turn.stage is not None and turn.stage.startswith(_READ)
    return (turn.stage or "").removeprefix(_READ) if read else None
