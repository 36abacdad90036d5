"""Summarizes an experiment's runs: figures for each arm and scenario, comparisons of arms, and causes of failures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final, Literal

from statek_sim.evals.arms import AGENT, FULL, Arm
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.outcome import Count, FailureClass, Outcome, Tokens, Turn


def pass_power(passes: Sequence[tuple[int, int]], k: int) -> float | None:
    """Return pass^k: the probability that k runs all pass, averaged over scenarios.

    Each item is (passed, total). Returns None if there are too few runs.
    """
    if not passes or any(of < k for _, of in passes):
        return None
    return sum(comb(passed, k) / comb(of, k) for passed, of in passes) / len(passes)


SAMPLES: Final = 2_000
LEAST_CLUSTERS: Final = 6
"""The minimum number of clusters for a 95 % interval. Bootstrap means lie between the smallest and the largest cluster,
which enclose the true median with probability 1 - 2^(1-k) for k clusters: only 93.75 % for five.
"""
_TAIL: Final = 0.025


def cluster_interval(clusters: Sequence[Sequence[float]], *, seed: int = 0) -> tuple[float, float] | None:
    """Return a bootstrapped 95 % interval for the mean over clusters, which are drawn with replacement.

    Each cluster contains the values for one scenario's runs. Returns None for fewer than `LEAST_CLUSTERS` clusters.
    """
    kept = [(sum(values), len(values)) for values in clusters if values]
    if len(kept) < LEAST_CLUSTERS:
        return None
    chance = random.Random(f"clusters/{seed}/{len(kept)}")
    means: list[float] = []
    for _ in range(SAMPLES):
        drawn = chance.choices(kept, k=len(kept))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    return means[int(_TAIL * SAMPLES)], means[int((1 - _TAIL) * SAMPLES) - 1]


ALPHA: Final = 0.05
"""The significance level for the adjusted p."""


@dataclass(frozen=True, slots=True)
class Discordance:
    """The number of `pairs` of runs, and how many only the `first` or only the `second` arm passed."""

    first: int
    second: int
    pairs: int

    @property
    def difference(self) -> float:
        """The first arm's pass rate minus the second's."""
        return (self.first - self.second) / self.pairs if self.pairs else 0.0


def discordance(pairs: Iterable[tuple[bool, bool]]) -> Discordance:
    """Count the pairs of runs in which only one passed; each item is two flags, for the first and the second run."""
    only_first = only_second = count = 0
    for first, second in pairs:
        count += 1
        only_first += first and not second
        only_second += second and not first
    return Discordance(only_first, only_second, count)


def mcnemar(first: int, second: int) -> float:
    """Return the two-sided p value of McNemar's exact test for these numbers of discordant pairs."""
    count = first + second
    if not count:
        return 1.0
    tail, ways = 0, 1
    for at in range(min(first, second) + 1):
        tail += ways
        ways = ways * (count - at) // (at + 1)
    # Divide integers last: a float of 2**count overflows from 1024 on.
    return min(1.0, float(2 * tail / 2**count))


Answer = Literal["different", "different here", "cannot tell", "not exercised"]
_NOTHING: Final = ("cannot tell", "not exercised")

Pairs = Sequence[Sequence[tuple[bool, bool]]]
"""For each scenario, a list with a pair for each seed: whether the first and the second arm passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of two arms. `p` comes from McNemar's exact test; `adjusted` is `p` after Holm's correction.

    `interval` is the 95 % interval of the difference in pass rates over scenarios. `answer` is "different here" if the
    arms differ on these scenarios, but too few scenarios were run to generalize. It is "not exercised" if all runs were
    equal in both arms, turn by turn, because the part in which the arms differ never had an effect.
    """

    first: str
    second: str
    seen: Discordance
    p: float
    adjusted: float
    interval: tuple[float, float]
    answer: Answer

    @property
    def enough(self) -> bool:
        """Whether there are enough runs to decide the comparison."""
        return self.answer not in _NOTHING


def compared(
    arms: Mapping[tuple[str, str], Pairs], *, same: Collection[tuple[str, str]] = ()
) -> tuple[Comparison, ...]:
    """Return all of an experiment's comparisons; `same` names the pairs of arms whose runs were identical."""
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
    answer = "not exercised" if same else _answer(adjusted, interval)
    return Comparison(
        first=names[0],
        second=names[1],
        seen=seen,
        p=p,
        adjusted=adjusted,
        interval=interval,
        answer=answer,
    )


def _answer(adjusted: float, interval: tuple[float, float]) -> Answer:
    if adjusted <= ALPHA:
        # The runs of a single scenario can make McNemar's test significant, although other scenarios may not differ.
        return "different here" if interval[0] <= 0 <= interval[1] else "different"
    return "cannot tell"


def holm(values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return p values corrected by Holm's method, which keeps the family-wise error rate at a single test's rate."""
    found: dict[tuple[str, str], float] = {}
    largest = 0.0
    for at, (names, p) in enumerate(sorted(values.items(), key=lambda item: (item[1], item[0]))):
        largest = max(largest, min(1.0, p * (len(values) - at)))
        found[names] = largest
    return found


TIERS: Final = ("easy", "medium", "hard")
POWERS: Final = (1, 2, 4, 8)
"""The values of k for which pass^k is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """One scenario's runs in one arm; `points` is the mean fraction of demands met, from 0 to 1."""

    runs: int
    completed: int
    passed: int
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """The figures for one arm over all scenarios and seeds.

    `completion` is the fraction of runs that ended with an answer, and `score` the fraction that passed; `interval` is
    the 95 % interval of the score over scenarios. `calls`, `model_calls` and `wasted` are means per run. `tiers`
    contains the number of passed runs and all runs in each tier. `seconds` is the real time of all runs of a user's own
    agent, otherwise None.
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
    """An experiment's figures, as shown in all reports; there is one of the `cells` for each scenario and arm."""

    experiment: Experiment
    arms: tuple[ArmSummary, ...]
    cells: Mapping[str, Mapping[str, CellSummary]]
    comparisons: tuple[Comparison, ...]


def summarised(experiment: Experiment, outcomes: Sequence[Outcome]) -> Summary:
    """Summarize all runs of an experiment."""
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
    """Return runs grouped by scenario, in order."""
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
    """Return each tier's number of passed runs and of all runs; tiers without runs are left out."""
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
    """Compare one arm with each of the others: the user's agent, or else the full harness, or else the first arm."""
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
    """Return whether two arms' runs were identical, turn by turn and token by token."""
    return [run._replace(arm="") for run in group] == [run._replace(arm="") for run in other]


_READ: Final = "read: "


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """The turns with one class of mistakes in one arm, and the runs with at least one such turn.

    `rescued` counts, by stage, the turns whose call rescue parsing recovered; `nudged` counts, by correction, the turns
    that were followed by one. `completed` is the number of runs that ended with an answer, and `passed` the number with
    the right answer.
    """

    failure: str
    turns: int
    rescued: tuple[tuple[str, int], ...]
    nudged: tuple[tuple[str, int], ...]
    runs: int
    completed: int
    passed: int


def flow_of(outcomes: Sequence[Outcome]) -> tuple[FlowRow, ...]:
    """Return a row for each class of mistakes that occurred, in the order in which classes are drawn."""
    return tuple(row for name in FailureClass if (row := _row(name.value, outcomes)).turns)


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
