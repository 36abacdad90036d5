"""An experiment: every scenario with every seed in every arm, on one model, by any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.profile import IDEAL, Profile
from statek_sim.evals.runner import MODEL, Played, run_one
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.served_agent import play_agent
from statek_sim.executors.executor import Executor
from statek_sim.executors.pool import Killed
from statek_sim.usage.tokenizers import tokenizer_for_model

BATCH: Final = 80
"""Approximate runs per batch: sending a batch costs little compared with running it."""

Heard = Callable[[int, int], None]
"""Called with the number of finished runs and the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The runs to make on a simulated model.

    Seeds are 0 to `seeds` - 1; all arms of a scenario and seed share their random numbers.
    """

    suite: tuple[EvalScenario, ...]
    model: Profile
    arms: tuple[Arm, ...]
    seeds: int

    def __post_init__(self) -> None:
        """Raise `BadInput` for an experiment without runs."""
        if self.seeds < 1:
            raise BadInput(f"--seeds {self.seeds}: expected 1 or more")
        if not self.suite:
            raise BadInput("no eval is left to run")

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.suite) * self.seeds * len(self.arms)


def batches(
    experiment: Experiment,
) -> Iterator[tuple[EvalScenario, int, int, tuple[Arm, ...], Profile]]:
    """Yield the batches: a scenario, a range of seeds, the arms and the model."""
    size = max(1, BATCH // len(experiment.arms))
    for scenario in experiment.suite:
        for first in range(0, experiment.seeds, size):
            yield scenario, first, min(first + size, experiment.seeds), experiment.arms, experiment.model


def run_batch(
    scenario: EvalScenario, first: int, behind: int, arms: Sequence[Arm], model: Profile
) -> list[Outcome]:
    """Return the outcomes of a scenario with these seeds in all arms."""
    return [play_one(scenario, seed, arm, model).outcome for seed in range(first, behind) for arm in arms]


def play_one(scenario: EvalScenario, seed: int, arm: Arm, model: Profile) -> Played:
    """Return one run of an experiment, with its full history."""
    profile = IDEAL if arm.ideal else model
    if arm.agent is not None:
        return Played(play_agent(scenario, seed, arm, arm.agent, profile), ())
    return run_one(scenario, seed, arm, profile)


def run_experiment(experiment: Experiment, executor: Executor, heard: Heard | None = None) -> list[Outcome]:
    """Return the outcomes of all runs, by scenario, seed and arm: the same with any executor."""
    tasks = list(batches(experiment))
    outcomes: list[Outcome] = []
    for task, came in zip(tasks, executor.map(run_batch, tasks, prepare=_prepared), strict=True):
        if isinstance(came, Killed):
            raise BadInput(
                f"eval {task[0].id!r}, seeds from {task[1]}: {came}; nothing can be said without it"
            )
        outcomes += came
        if heard is not None:
            heard(len(outcomes), experiment.runs)
    return outcomes


def _prepared() -> None:
    """Load what every worker needs: the vocabulary of the tokenizer."""
    tokenizer_for_model(MODEL).tokenizer.count("a")
