"""Points with the same durable state go on alike: what is not played would have come to the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.explore import plan
from statek_sim.explore.variation import Ending, Variation, undisturbed, varied
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites
from tests.explore import samples


def endings_by_state(base: Variation) -> dict[str, list[Ending]]:
    found: dict[str, list[Ending]] = {}
    for point, state in zip(base.points, base.states, strict=True):
        with varied(base, (plan.kill_at(point, plan.restart_of(base)),)) as variation:
            found.setdefault(state, []).append(variation.ending)
    return found


@pytest.mark.parametrize("text", [samples.CLAIM, samples.WAITS, samples.TWO_JOBS])
def test_a_kill_at_a_pruned_point_ends_like_the_one_that_is_played(tmp_path: Path, text: str) -> None:
    base = undisturbed(samples.scenario(tmp_path, text), "docs")
    found = endings_by_state(base)
    assert len(found) < len(base.points)
    assert all(ending == endings[0] for endings in found.values() for ending in endings)


@pytest.mark.slow
def test_that_holds_for_the_built_in_suites_that_crash_most() -> None:
    for suite in ("claims", "delegation", "suspension"):
        for scenario in load_or_fail([builtin_suites() / suite])[::12]:
            base = undisturbed(scenario, scenario.profiles[0])
            for state, endings in endings_by_state(base).items():
                assert all(ending == endings[0] for ending in endings), (scenario.id, state)


def test_the_undisturbed_run_is_the_one_that_the_backend_plays(tmp_path: Path) -> None:
    scenario = samples.scenario(tmp_path, samples.WAITS)
    base = undisturbed(scenario, "docs")
    record = base.record
    assert base.digest == record.digest
    assert record.error is None
