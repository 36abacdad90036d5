"""Gate verdicts as test items: one item per preset, rule and scenario, and one item per baseline case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_statek.nodes import ItemFailed, StatekItem
from pytest_statek.watchdog import is_looked_into
from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.gate.baseline import Baseline, BaselineCase, baseline_cases
from statek_sim.gate.gate import Case, GatePlan, WatchedJudge, cases, workloads
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.scenario.schema import Profile

_FOLDER: Final = "statek_gate"
"""The prefix of verdict node ids."""


class VerdictItem(StatekItem):
    """A test item that checks one case; can be selected with `-k` by preset, rule, scenario and tags."""

    def __init__(
        self, *, case: Case | BaselineCase, judge: WatchedJudge | None, parent: pytest.Collector, **node: Any
    ) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        super().__init__(name=f"{case.rule}::{case.scenario}", parent=parent, **node)
        self._case = case
        self._judge = judge
        self.extra_keyword_matches.update(case.tags)
        self.user_properties += [("preset", case.preset.name), ("rule", case.rule)]

    def runtest(self) -> None:
        """Check the case; the scenario runs in the watched process, if there is one."""
        verdict = self._case.verdict() if self._judge is None else self._judge.verdict(self._case)
        if not verdict.passed:
            raise ItemFailed(f"{verdict.place}: {verdict.reason}")

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the preset's file, line number 0 and the title."""
        return self.path, 0, f"{self._case.preset.name}::{self.name}"


class GatedPresetNode(pytest.Collector):
    """A preset, with one item per verdict."""

    def __init__(self, *, cases: list[Case | BaselineCase], judge: WatchedJudge | None, **node: Any) -> None:
        # Any: what pytest's own nodes take.
        super().__init__(**node)
        self._cases = cases
        self._judge = judge

    def collect(self) -> Iterable[VerdictItem]:
        """Yield the items, rule by rule."""
        for case in self._cases:
            yield VerdictItem.from_parent(self, case=case, judge=self._judge)


class GateFailedToStart(pytest.Collector):
    """A collection error for the gate's scenarios or a policy."""

    def __init__(self, *, problem: str, **node: Any) -> None:
        # Any: what pytest's own nodes take.
        super().__init__(**node)
        self._problem = problem

    def collect(self) -> Iterable[VerdictItem]:
        """Raise the problem, which pytest prints as text."""
        raise self.CollectError(self._problem)


class GateCollection:
    """A run's presets as nodes."""

    def __init__(
        self,
        plan: GatePlan,
        scenarios: tuple[str, ...],
        profile: Profile,
        *,
        baselines: Mapping[str, Baseline],
        watchdog: WatchdogLimits | None,
    ) -> None:
        self._plan = plan
        self._baselines = baselines
        self._scenarios = scenarios
        self._profile = profile
        self._watchdog = watchdog

    def nodes(self, session: pytest.Session) -> Iterator[pytest.Collector]:
        """Yield a node per preset, or a problem with the scenarios or the policy."""
        try:
            found = list(cases(self._plan, workloads(self._scenarios), profile=self._profile))
        except BadInput as error:
            yield GateFailedToStart.from_parent(session, name=_FOLDER, nodeid=_FOLDER, problem=str(error))
            return
        every: list[Case | BaselineCase] = [*found, *baseline_cases(self._plan, found, self._baselines)]
        judge = self._judge(session.config, every)
        for preset in self._plan.presets:
            yield _node(session, preset, [case for case in every if case.preset == preset], judge)

    def _judge(self, config: pytest.Config, every: list[Case | BaselineCase]) -> WatchedJudge | None:
        if self._watchdog is None or is_looked_into(config):
            return None
        judge = WatchedJudge(every, self._watchdog)
        config.add_cleanup(judge.close)
        return judge


def _node(
    session: pytest.Session,
    preset: GatedPreset,
    own: list[Case | BaselineCase],
    judge: WatchedJudge | None,
) -> pytest.Collector:
    return GatedPresetNode.from_parent(
        session,
        name=preset.name,
        path=preset.preset.path.absolute(),
        nodeid=f"{_FOLDER}/{preset.name}",
        cases=own,
        judge=judge,
    )
