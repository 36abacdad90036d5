"""`--statek-explore`: one extra test per scenario that explores all crashes, orderings, limits and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_statek.nodes import ItemFailed, StatekItem
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.workers import explore_one
from statek_sim.reporting.exploration import failure_lines
from statek_sim.scenario.schema import Profile, Scenario


class ExploreItem(StatekItem):
    """Explores a scenario; skipped if the scenario cannot be explored. Marked `statek`."""

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
        super().__init__(name=f"explore/{scenario.suite}/{scenario.id}[{profile}]", parent=parent, **node)
        self.scenario = scenario
        self.profile = profile
        self._own = own

    def runtest(self) -> None:
        """Explore the scenario."""
        explored = explore_one(self.scenario, self.profile, own=self._own, bounds=Bounds())
        if explored.problem is not None:
            pytest.skip(explored.problem)
        if explored.failed:
            again = f"statek-sim explore {self.scenario.path} --select {self.scenario.id} --save DIR"
            raise ItemFailed("\n".join([*map(str, failure_lines(explored)), "", again]))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the zero-based line number and the title."""
        return self.path, self.scenario.line - 1, self.name
