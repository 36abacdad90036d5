"""A scenario under one profile as a test item."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from pytest_statek.installed import peer_of
from pytest_statek.nodes import ItemFailed, StatekItem
from pytest_statek.outcome import bind_what_is_kept, damage
from pytest_statek.plan import Plan
from pytest_statek.tokenizers import tokenizers
from pytest_statek.watchdog import runner_of
from statek_sim.errors import BadInput
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.diff import failure_text, told_after
from statek_sim.suite.installed import run_one_installed
from statek_sim.suite.result import Outcome, ScenarioResult

_PYTEST_OWN: Final = frozenset(
    {"filterwarnings", "parametrize", "skip", "skipif", "statek", "usefixtures", "xfail"}
)
"""Tags that are not added as markers because pytest has markers with these names; `-k` still finds them."""


_TOLD: Final = pytest.StashKey[dict[tuple[str, str], ScenarioResult]]()
"""The key in `config.stash` for each failed scenario's first failure, by suite and id."""


def told_once(config: pytest.Config, result: ScenarioResult) -> str:
    """Return the failure text, or only the differences if the scenario has already failed under another profile."""
    shown = config.stash.setdefault(_TOLD, {})
    first = shown.setdefault((result.scenario.suite, result.scenario.id), result)
    return failure_text(result) if first.profile == result.profile else told_after(result, first)


class ScenarioItem(StatekItem):
    """Runs a scenario and sets `result`. Marked with `statek` and the scenario's tags."""

    def __init__(
        self, *, scenario: Scenario, profile: Profile, plan: Plan, parent: pytest.Collector, **node: Any
    ) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        super().__init__(name=f"{scenario.suite}/{scenario.id}[{profile}]", parent=parent, **node)
        self.scenario = scenario
        self.profile = profile
        self.result: ScenarioResult | None = None
        self._plan = plan
        # Written by `--junitxml` as properties of the test case.
        self.user_properties += [
            ("source", scenario.source),
            ("suite", scenario.suite),
            ("profile", profile),
            ("proves", ", ".join(scenario.proves)),
        ]
        self._add_tags()

    def _add_tags(self) -> None:
        for tag in self.scenario.tags:
            self.extra_keyword_matches.add(tag)
            if tag.isidentifier() and not tag.startswith("_") and tag not in _PYTEST_OWN:
                self.config.addinivalue_line("markers", f"{tag}: a scenario tag")
                self.add_marker(tag)

    def runtest(self) -> None:
        """Run the scenario and compare it with its expectations."""
        self.result = self._on_reference() if self._plan.installed is None else self._on_installed()
        # Not `ihook`, because the built-in suites are outside of every conftest's folder.
        self.config.hook.pytest_statek_scenario_result(result=self.result)
        if self.result.outcome is Outcome.FAILED:
            raise ItemFailed(told_once(self.config, self.result))
        lost = damage(self.result.record.events) if self._plan.strict_storage else ()
        if lost:
            raise BadInput(bind_what_is_kept(lost))

    def _on_reference(self) -> ScenarioResult:
        return runner_of(self.config, self._plan)(self.scenario, self.profile)

    def _on_installed(self) -> ScenarioResult:
        """Run the scenario on the real package, in a process with no network access except to the scripted LLM."""
        return run_one_installed(
            peer_of(self.config),
            self.scenario,
            self.profile,
            preset=self._plan.preset,
            seed=self._plan.seed,
            tokenizers=tokenizers(self.config),
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, the zero-based line number and the title."""
        return self.path, self.scenario.line - 1, self.name
