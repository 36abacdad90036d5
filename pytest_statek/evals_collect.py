"""Collects eval files (one item per eval, or per eval and arm) and policies (one item per rule)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_statek.evals_items import EvalItem, ModelItem, ModelRuns, RuleItem, ScriptItem, ScriptRuns
from pytest_statek.nodes import node_id
from statek_sim.errors import BadInput
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import LoadedSuite, load_paths
from statek_sim.gate.evals_policy import EvalsPolicy, check_evals_policy
from statek_sim.scenario.problem import Problem


class EvalsNode(pytest.Collector):
    """An eval file. All problems in the file are reported as one collection error, one per line."""

    def __init__(
        self,
        *,
        evals: Sequence[EvalScenario],
        problems: Sequence[Problem],
        runs: ScriptRuns | ModelRuns,
        **node: Any,
    ) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        super().__init__(**node)
        self._evals = evals
        self._problems = problems
        self._runs = runs

    def collect(self) -> Iterable[EvalItem]:
        """Yield the items; raises `CollectError`, which pytest prints as text, if the file has problems."""
        if self._problems:
            raise self.CollectError("\n".join(map(str, self._problems)))
        for scenario in self._evals:
            yield from self._items(scenario)

    def _items(self, scenario: EvalScenario) -> Iterator[EvalItem]:
        match self._runs:
            case ScriptRuns() as runs:
                yield ScriptItem.from_parent(self, scenario=scenario, runs=runs)
            case ModelRuns() as runs:
                for arm in runs.arms:
                    yield ModelItem.from_parent(self, scenario=scenario, runs=runs, arm=arm)


class PolicyNode(pytest.Collector):
    """A policy, with one item per rule. A rule that matches no run causes a collection error."""

    def __init__(
        self, *, suite: Sequence[EvalScenario], runs: ModelRuns, policy: EvalsPolicy, **node: Any
    ) -> None:
        # Any: as in `EvalsNode`.
        super().__init__(**node)
        self._suite = suite
        self._runs = runs
        self._policy = policy

    def collect(self) -> Iterable[RuleItem]:
        """Yield the items in file order."""
        try:
            experiment = Experiment(
                suite=tuple(self._suite), model=self._runs.profile, arms=self._runs.rule_arms, seeds=1
            )
            check_evals_policy(self._policy, experiment, option="statek_evals_arm")
        except BadInput as problem:
            raise self.CollectError(str(problem)) from None
        for rule in self._policy.rules:
            alone = replace(self._policy, rules=(rule,))
            yield RuleItem.from_parent(self, suite=self._suite, runs=self._runs, policy=alone)


def evals_nodes(
    session: pytest.Session, files: Sequence[Path], runs: ScriptRuns | ModelRuns
) -> Iterator[EvalsNode | PolicyNode]:
    """Yield a node per eval file and, if there is a model, nodes for evals missing from the run and for the policy."""
    # All at once: ids are unique among everything loaded.
    loaded = load_paths(files)
    for file in files:
        path = Path(os.path.normpath(session.config.invocation_params.dir / file))
        if not session.isinitpath(path):
            yield evals_node(session, path, file, loaded, runs)
    if files and isinstance(runs, ModelRuns):
        yield from _gone(session, loaded, runs)
        if runs.policy is not None and not loaded.problems:
            yield _policy_node(session, loaded.evals, runs, runs.policy)


def _policy_node(
    session: pytest.Session, suite: Sequence[EvalScenario], runs: ModelRuns, policy: EvalsPolicy
) -> PolicyNode:
    path = Path(os.path.normpath(session.config.invocation_params.dir / policy.path))
    return PolicyNode.from_parent(
        session,
        name=path.name,
        path=path,
        nodeid=node_id(path, session.config.rootpath),
        suite=suite,
        runs=runs,
        policy=policy,
    )


def _gone(session: pytest.Session, loaded: LoadedSuite, runs: ModelRuns) -> Iterator[EvalsNode]:
    """Yield a failing node if the baseline contains evals that no longer exist, which would otherwise go unnoticed."""
    if runs.baseline is None:
        return
    known = {scenario.id for scenario in loaded.evals}
    part = runs.baseline.only(arms=[arm.name for arm in runs.arms])
    gone = [name for name in part.evals if name not in known]
    if not gone or loaded.problems:
        return
    file = Path(runs.baseline_file)
    path = Path(os.path.normpath(session.config.invocation_params.dir / file))
    problem = (
        f"evals not found under --statek-evals: {', '.join(gone)}; run all evals and select some with -k, or update "
        "the baseline with `statek-sim evals run --update-baseline`"
    )
    yield EvalsNode.from_parent(
        session,
        name=file.name,
        path=path,
        nodeid=node_id(path, session.config.rootpath),
        evals=(),
        problems=[Problem(file, 0, 0, problem)],
        runs=runs,
    )


def evals_node(
    parent: pytest.Collector, path: Path, file: Path, loaded: LoadedSuite, runs: ScriptRuns | ModelRuns
) -> EvalsNode:
    """Return the node for the eval file at `path`, displayed as `file`, with its evals in `loaded`."""
    return EvalsNode.from_parent(
        parent,
        name=path.name,
        path=path,
        nodeid=node_id(path, parent.config.rootpath),
        evals=[scenario for scenario in loaded.evals if scenario.path == file],
        problems=[problem for problem in loaded.problems if problem.path == file],
        runs=runs,
    )
