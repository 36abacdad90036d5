"""The same scenario gives the same trace on both drivers."""

from __future__ import annotations

from typing import Final

import pytest

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites
from tests.agent.on_asyncio import OnAsyncio

CASES: Final = [
    pytest.param(scenario, variant, id=f"{scenario.id}[{variant}]")
    for scenario in load_or_fail(sorted(builtin_suites().glob("agent-*")))
    for variant in scenario.profiles
]


@pytest.mark.parametrize(("scenario", "variant"), CASES)
def test_a_scenario_has_the_same_trace_on_both_drivers(scenario: Scenario, variant: str) -> None:
    simulated = run_agent_scenario(scenario, variant)
    on_asyncio = run_agent_scenario(scenario, variant, driver=OnAsyncio)
    assert list(on_asyncio.events) == list(simulated.events)
    assert (on_asyncio.digest, on_asyncio.error) == (simulated.digest, simulated.error)
    assert on_asyncio.jobs == simulated.jobs


def test_there_are_scenarios_to_compare() -> None:
    assert len(CASES) >= 160
