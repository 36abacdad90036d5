"""`--statek-explore`: one more test per scenario, which plays every crash, order, limit and fault of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statek_sim.errors import BadInput
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.result import Explored
from statek_sim.explore.workers import explore_one
from statek_sim.reporting.exploration import failure_lines
from statek_sim.scenario.schema import Profile, Scenario


class ExplorationFailed(Exception):
    """An invariant is violated."""

    def __init__(self, explored: Explored) -> None:
        super().__init__(explored.id)
        self.explored = explored


class ExploreItem(pytest.Item):
    """Explores its scenario; skipped if that is impossible. Marked `statek`."""

    def __init__(
        self,
        *,
        scenario: Scenario,
        profile: Profile,
        parent: pytest.Collector,
        own: tuple[str, ...],
        **node: Any,
    ) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        name = f"explore/{scenario.suite}/{scenario.id}[{profile}]"
        super().__init__(name=name, parent=parent, nodeid=f"{parent.nodeid}::{name}", **node)
        self.scenario = scenario
        self.profile = profile
        self._own = own
        self.add_marker("statek")

    def runtest(self) -> None:
        """Explore it."""
        explored = explore_one(self.scenario, self.profile, own=self._own, bounds=Bounds())
        if explored.problem is not None:
            pytest.skip(explored.problem)
        if explored.failed:
            raise ExplorationFailed(explored)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return text for people: the violations, the deviations, and the command that reproduces them."""
        # Any: pytest's own types of traceback and style are not public.
        match excinfo.value:
            case ExplorationFailed(explored=explored):
                again = f"statek-sim explore {self.scenario.path} --select {self.scenario.id} --save DIR"
                return "\n".join([*map(str, failure_lines(explored)), "", again])
            case BadInput() as problem:
                return str(problem)
            case _:
                return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, line from 0, and title."""
        return self.path, self.scenario.line - 1, self.name
