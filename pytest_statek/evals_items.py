"""Evals as test items. An item runs an eval's scripts, runs a simulated model on an eval, or checks a policy rule."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_statek.nodes import ItemFailed, StatekItem
from statek_sim.errors import BadInput
from statek_sim.evals.arms import Arm
from statek_sim.evals.baseline import Baseline, held_against
from statek_sim.evals.experiment import Experiment, run_batch
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.players import failure_line, proofs
from statek_sim.evals.profile import Profile
from statek_sim.evals.scenario import EvalScenario
from statek_sim.gate.evals_policy import EvalsPolicy, judge_evals, selected


@dataclass(frozen=True, slots=True)
class ScriptRuns:
    """Settings for running an eval's scripts, with seeds starting at 0."""

    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRuns:
    """Settings for running a simulated model on evals with a baseline, a policy or both.

    `model` is the model name as given by the user. If `seeds` is None, the number of seeds is taken from the baseline,
    or is `SEEDS` without a baseline. `arms` are compared with the baseline; `rule_arms` are the arms used by the
    policy's rules.
    """

    model: str
    profile: Profile
    arms: tuple[Arm, ...]
    seeds: int | None
    baseline: Baseline | None
    baseline_file: str
    policy: EvalsPolicy | None = None
    rule_arms: tuple[Arm, ...] = ()
    _played: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)

    def known(self, scenario: EvalScenario, arm: Arm) -> int:
        """Return the number of seeds for an eval in an arm of the baseline."""
        return 0 if self.baseline is None else self.baseline.seeds_of(arm.name, scenario.id)

    def played(self, scenario: EvalScenario, arm: Arm) -> list[Outcome]:
        """Return an eval's outcomes in an arm. Outcomes are cached, because several items may need them."""
        key = scenario.id, arm.name
        if key not in self._played:
            seeds = self.seeds or self.known(scenario, arm) or SEEDS
            self._played[key] = run_batch(scenario, 0, seeds, (arm,), self.profile)
        return self._played[key]


SEEDS: Final = 10
"""The default number of seeds for a model without a baseline, as in `statek-sim evals run`."""
RUNS: Final = pytest.StashKey[ScriptRuns | ModelRuns]()
"""The key in `config.stash` for the evals settings."""


def _failed(lines: Iterable[str], command: str) -> ItemFailed:
    """Return a failure with these lines and the command that reproduces it."""
    return ItemFailed("\n".join([*lines, "", command]))


class EvalItem(StatekItem):
    """An eval, which can be selected with `-k` by id, tier and capability. Marked `statek`."""

    def __init__(self, *, scenario: EvalScenario, again: tuple[str, ...], **node: Any) -> None:
        # Any: what pytest's own nodes take.
        super().__init__(**node)
        self.scenario = scenario
        self._again = again
        self.extra_keyword_matches.update((scenario.tier, scenario.capability))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the zero-based line number and the title."""
        return self.path, self.scenario.line - 1, self.name

    def _command(self) -> str:
        name, *options = self._again
        return shlex.join(
            ["statek-sim", "evals", name, str(self.scenario.path), "--eval", self.scenario.id, *options]
        )


class ScriptItem(EvalItem):
    """Plays an eval's ideal script, which must pass, and its incorrect scripts, which must fail."""

    def __init__(self, *, scenario: EvalScenario, runs: ScriptRuns, **node: Any) -> None:
        # Any: what pytest's own nodes take.
        again = ("check", "--seeds", str(runs.seeds))
        super().__init__(scenario=scenario, again=again, name=scenario.id, **node)
        self._runs = runs

    def runtest(self) -> None:
        """Play all scripts with every seed."""
        played = proofs(self.scenario, range(self._runs.seeds))
        bad = [failure_line(self.scenario, proof) for proof in played if not proof.as_it_should]
        if bad:
            raise _failed(bad, self._command())


class ModelItem(EvalItem):
    """Runs a simulated model on an eval in one arm; fails if fewer runs pass than in the baseline."""

    def __init__(self, *, scenario: EvalScenario, runs: ModelRuns, arm: Arm, **node: Any) -> None:
        # Any: what pytest's own nodes take.
        self._known = runs.known(scenario, arm)
        self._seeds = self._known if runs.seeds is None else runs.seeds
        self._runs = runs
        self._arm = arm
        how = ("run", "--model", runs.model, "--arms", arm.name)
        # All seeds in the baseline: a smaller number would not be compared there.
        again = (*how, "--seeds", str(self._known), "--baseline", runs.baseline_file)
        super().__init__(scenario=scenario, again=again, name=f"{scenario.id}[{arm.name}]", **node)
        self.user_properties += [("model", runs.profile.name), ("arm", arm.name)]

    def runtest(self) -> None:
        """Run the eval with every seed and compare the results with the baseline."""
        self._refuse_unknown()
        runs = self._runs
        assert runs.baseline is not None, "items of a baseline require a baseline"
        experiment = Experiment(
            suite=(self.scenario,), model=runs.profile, arms=(self._arm,), seeds=self._seeds
        )
        outcomes = runs.played(self.scenario, self._arm)
        part = runs.baseline.only(arms=[self._arm.name], evals=[self.scenario.id], seeds=self._seeds)
        held = held_against(part, experiment, outcomes, name=runs.baseline_file)
        if held.failed:
            raise _failed(held.lines, self._command())

    def _refuse_unknown(self) -> None:
        """Raise `BadInput` if the baseline lacks some of the runs, because those would always pass."""
        if not self._known or self._known < self._seeds:
            place = f"{self.scenario.path}:{self.scenario.line}: eval {self.scenario.id!r}"
            known = f"contains {self._known} seeds for it in arm {self._arm.name!r}"
            wanted = "some" if self._runs.seeds is None else f"{self._seeds}"
            raise BadInput(
                f"{place}: {self._runs.baseline_file} {known}, expected {wanted}; rewrite it with "
                "`statek-sim evals run --update-baseline`"
            )


class RuleItem(StatekItem):
    """A policy rule: runs a simulated model on the evals that the rule selects, in the rule's arm."""

    def __init__(
        self, *, suite: Sequence[EvalScenario], runs: ModelRuns, policy: EvalsPolicy, **node: Any
    ) -> None:
        # Any: what pytest's own nodes take.
        ((rule, self._line),) = policy.rules
        super().__init__(name=rule.name, **node)
        self._runs = runs
        self._policy = policy
        self._files = tuple(dict.fromkeys(str(eval_scenario.path) for eval_scenario in suite))
        self._suite = tuple(selected(rule, suite))
        self._arm = next(arm for arm in runs.rule_arms if arm.name == rule.arm)
        self._seeds = SEEDS
        self.user_properties += [("model", runs.profile.name), ("arm", rule.arm)]

    def runtest(self) -> None:
        """Run the evals and check the runs against the rule."""
        outcomes = [run for scenario in self._suite for run in self._runs.played(scenario, self._arm)]
        self._seeds = max(run.seed for run in outcomes) + 1
        experiment = Experiment(
            suite=self._suite, model=self._runs.profile, arms=(self._arm,), seeds=self._seeds
        )
        (verdict,) = judge_evals(self._policy, experiment, outcomes)
        if not verdict.passed:
            raise _failed(verdict.lines, self._command())

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the zero-based line number and the name."""
        return self.path, self._line - 1, self.name

    def _command(self) -> str:
        # The command judges all rules of the policy, so it needs the arms of all rules.
        arms = [word for arm in self._runs.rule_arms for word in ("--arms", arm.name)]
        how = [
            "--model",
            self._runs.model,
            *arms,
            "--seeds",
            str(self._seeds),
            "--policy",
            str(self._policy.path),
        ]
        return shlex.join(["statek-sim", "evals", "run", *self._files, *how])
