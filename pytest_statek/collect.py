"""Collects scenario files. Each scenario yields one item per profile."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from pytest_statek.item import ScenarioItem
from pytest_statek.nodes import node_id
from pytest_statek.options import SCENARIO_SUFFIXES
from pytest_statek.plan import Plan
from statek_sim.scenario.files import is_eval_file
from statek_sim.scenario.load import LoadResult, load_paths
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.run import chosen


class ScenarioFile(pytest.Collector):
    """A scenario file. All problems in the file are reported as one collection error, one per line."""

    def __init__(self, *, loaded: LoadResult, plan: Plan, **node: Any) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        super().__init__(**node)
        self._loaded = loaded
        self._plan = plan

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the items; raises `CollectError`, which pytest prints as text, if the file has problems."""
        problems = [problem for problem in self._loaded.problems if _same(problem.path, self.path)]
        if problems:
            raise self.CollectError("\n".join(map(str, problems)))
        own = [scenario for scenario in self._loaded.scenarios if _same(scenario.path, self.path)]
        for scenario, profile in chosen(own, profiles=self._plan.profiles or None):
            yield ScenarioItem.from_parent(self, scenario=scenario, profile=profile, plan=self._plan)
        if self._plan.explore:
            yield from self._explorations(own)

    def _explorations(self, own: Sequence[Scenario]) -> Iterator[pytest.Item]:
        """Yield an exploration item for each scenario, under its first profile."""
        # Imported here, because most runs do not need it.
        from pytest_statek.explore import ExploreItem  # noqa: PLC0415

        first: dict[str, tuple[Scenario, Profile]] = {}
        for scenario, profile in chosen(own, profiles=self._plan.profiles or None):
            first.setdefault(scenario.id, (scenario, profile))
        for scenario, profile in first.values():
            yield ExploreItem.from_parent(self, scenario=scenario, profile=profile, own=self._plan.invariants)


class ScenarioFolder(pytest.Directory):
    """A node for the scenario files in a folder, needed so that pytest loads the folder's conftest."""

    def __init__(self, *, files: Sequence[Path], loaded: LoadResult, plan: Plan, **node: Any) -> None:
        # Any: what pytest's own nodes take.
        super().__init__(**node)
        self._files = files
        self._loaded = loaded
        self._plan = plan

    def collect(self) -> Iterable[ScenarioFile]:
        """Yield the files in the given order."""
        for path in self._files:
            yield _file_node(self, path, self._loaded, self._plan)


class ScenarioCollection:
    """Adds the planned scenario files to the session, and collects scenario files passed as arguments."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the planned files to the session's own nodes, or replace them."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            own = [] if self._plan.alone else list(report.result)
            report.result = [*own, *self._planned(collector)]
        return report

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a scenario or eval file if the file, or an item in it, was passed as an argument."""
        if file_path.suffix not in SCENARIO_SUFFIXES or not parent.session.isinitpath(file_path):
            return None
        here = parent.config.invocation_params.dir
        shown = file_path.relative_to(here) if file_path.is_relative_to(here) else file_path
        if is_eval_file(file_path):
            # Imported here, because most runs do not need it.
            from pytest_statek.evals import named_evals  # noqa: PLC0415

            return named_evals(parent, file_path, shown)
        return _file_node(parent, file_path, load_paths([shown]), self._plan)

    def _planned(self, session: pytest.Session) -> Iterator[ScenarioFolder]:
        # All at once: ids are unique among all loaded scenarios.
        loaded = load_paths(self._plan.files)
        here = session.config.invocation_params.dir
        paths = [Path(os.path.normpath(here / file)) for file in self._plan.files]
        named = [path for path in paths if not session.isinitpath(path)]
        for folder, files in groupby(named, lambda path: path.parent):
            yield ScenarioFolder.from_parent(
                session,
                path=folder,
                nodeid=node_id(folder, session.config.rootpath),
                files=list(files),
                loaded=loaded,
                plan=self._plan,
            )


def _file_node(parent: pytest.Collector, path: Path, loaded: LoadResult, plan: Plan) -> ScenarioFile:
    nodeid = node_id(path, parent.config.rootpath)
    return ScenarioFile.from_parent(
        parent, name=path.name, path=path, nodeid=nodeid, loaded=loaded, plan=plan
    )


def _same(path: Path, other: Path) -> bool:
    return os.path.abspath(path) == os.path.abspath(other)
