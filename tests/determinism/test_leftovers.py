"""What a run leaves behind is cleaned up whenever Python likes, and is no part of the run."""

from __future__ import annotations

import gc

import pytest

from statek_sim.explore.agent_player import AgentPlayer
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites, chosen, run_one


@pytest.fixture(scope="module")
def scenarios() -> tuple[Scenario, ...]:
    return load_or_fail([builtin_suites()])


@pytest.mark.parametrize(
    ("engine", "every"), [("statek", 4), ("agent", 1), pytest.param("statek", 1, marks=pytest.mark.slow)]
)
def test_no_run_has_more_events_after_everything_is_collected(
    scenarios: tuple[Scenario, ...], engine: str, every: int
) -> None:
    gc.collect()
    gc.disable()
    try:
        pairs = chosen([scenario for scenario in scenarios if scenario.engine == engine])
        records = [run_one(scenario, profile).record for scenario, profile in pairs[::every]]
        before = [len(record.events) for record in records]
        gc.collect()
    finally:
        gc.enable()
    assert len(records) > 300
    assert [len(record.events) for record in records] == before


def test_a_run_that_is_explored_has_no_more_moments_after_everything_is_collected(
    scenarios: tuple[Scenario, ...],
) -> None:
    (scenario,) = (one for one in scenarios if one.id == "slots-full")
    gc.collect()
    gc.disable()
    try:
        moments = AgentPlayer(scenario, "hardened").base.moments
        before = len(moments.points)
        gc.collect()
    finally:
        gc.enable()
    assert len(moments.points) == before
