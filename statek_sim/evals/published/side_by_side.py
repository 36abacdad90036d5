"""Published counts beside what the simulated model does with work of the same shape, and where that does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.evals.models.profile import Profile
from statek_sim.evals.published.forge import Published, PublishedScenario
from statek_sim.evals.published.shapes import played
from statek_sim.executors.executor import Executor
from statek_sim.executors.pool import Killed
from statek_sim.intervals import wilson

DRAWS: Final = 8
"""Models that are drawn from the fitted Betas, to see how far scenarios of one's own may be from the published ones."""
DRAWN_SEEDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Runs that completed, and that were right; None: not published for this scenario."""

    runs: int
    completed: int | None
    correct: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRow:
    """One scenario in one of the two arms."""

    scenario: PublishedScenario
    harness: bool
    published: Side
    simulated: Side

    @property
    def poor(self) -> bool:
        """Whether the two cannot be the same: their 95 % intervals do not touch."""
        return _apart(self.published, self.simulated, "completed") or _apart(
            self.published, self.simulated, "correct"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """All rows of one model. `drawn` are (completed, correct) shares of bare runs of models drawn from the fit."""

    published: Published
    profile: Profile
    rows: tuple[ScenarioRow, ...]
    drawn: tuple[tuple[float, float], ...]

    def of(self, *, harness: bool, tier: str | None = None) -> tuple[Side, Side]:
        """Return the sums of an arm, published and simulated, over all scenarios or those of a tier."""
        rows = [row for row in self.rows if row.harness == harness and tier in (None, row.scenario.tier)]
        published = _added([row.published for row in rows])
        if harness and tier is None:
            published = replace(published, completed=self.published.harness_completed_in_all)
        return published, _added([row.simulated for row in rows])


def _added(sides: Sequence[Side]) -> Side:
    known = [side.completed for side in sides if side.completed is not None]
    return Side(
        runs=sum(side.runs for side in sides),
        completed=sum(known) if len(known) == len(sides) else None,
        correct=sum(side.correct for side in sides),
    )


def _apart(first: Side, second: Side, what: str) -> bool:
    counts = getattr(first, what), getattr(second, what)
    if None in counts:
        return False
    ours, theirs = wilson(counts[0], first.runs), wilson(counts[1], second.runs)
    return ours is not None and theirs is not None and (ours[1] < theirs[0] or theirs[1] < ours[0])


def side_by_side(published: Published, profile: Profile, seeds: int, executor: Executor) -> SideBySide:
    """Return the published counts beside as many simulated runs per scenario as there are seeds."""
    if seeds < 1:
        raise BadInput(f"--seeds {seeds}: expected 1 or more")
    tasks = [
        (scenario, harness, profile, seeds) for scenario in published.scenarios for harness in (False, True)
    ]
    came = [_came(task_result) for task_result in executor.map(simulated, tasks)]
    by_task = {
        (scenario.name, harness): side for (scenario, harness, *_), side in zip(tasks, came, strict=True)
    }
    drawn_tasks = [
        (scenario, False, replace(profile, name=f"{profile.name} drawn {number}", scenarios={}), DRAWN_SEEDS)
        for number in range(DRAWS)
        for scenario in published.scenarios
    ]
    drawn = [_came(task_result) for task_result in executor.map(simulated, drawn_tasks)]
    width = len(published.scenarios)
    return SideBySide(
        published=published,
        profile=profile,
        rows=tuple(_rows(published, by_task)),
        drawn=tuple(_shares(drawn[at : at + width]) for at in range(0, len(drawn), width)),
    )


def simulated(scenario: PublishedScenario, harness: bool, profile: Profile, seeds: int) -> Side:  # sent
    """Return what comes of so many runs of one scenario."""
    runs = [played(scenario, seed, profile, harness=harness) for seed in range(seeds)]
    return Side(
        runs=seeds, completed=sum(completed for completed, _ in runs), correct=sum(right for _, right in runs)
    )


def _came(task_result: Side | Killed) -> Side:
    if isinstance(task_result, Killed):
        raise BadInput(f"a simulated scenario was {task_result}; nothing can be said without it")
    return task_result


def _rows(published: Published, came: dict[tuple[str, bool], Side]) -> Iterator[ScenarioRow]:
    for at, scenario in enumerate(published.scenarios):
        bare = Side(
            runs=published.runs, completed=published.bare_completed[at], correct=published.bare_correct[at]
        )
        helped = Side(runs=published.runs, completed=None, correct=published.harness_correct[at])
        for harness, side in ((False, bare), (True, helped)):
            yield ScenarioRow(
                scenario=scenario, harness=harness, published=side, simulated=came[scenario.name, harness]
            )


def _shares(sides: Sequence[Side]) -> tuple[float, float]:
    total = _added(sides)
    return (total.completed or 0) / total.runs, total.correct / total.runs
