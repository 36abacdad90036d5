"""A kill after one event, on the real STATEK: it ends as here, and so the failure is STATEK's."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.explore.differential import compare
from statek_sim.explore.explorer import Bounds, Explorer
from statek_sim.explore.result import Failure
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites
from tools.environments import on_this_python

PYTHONS = [one.interpreter for one in on_this_python()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHONS, reason="no real STATEK here; `make thorough` installs it"),
]


def claim() -> Scenario:
    loaded = load_or_fail([builtin_suites() / "claims"])
    return next(scenario for scenario in loaded if scenario.id == "claim-stopped-by-turns")


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parent.parent.name)
def test_a_lost_handler_and_a_leaked_claim_are_stateks(python: Path) -> None:
    scenario = claim()
    with Peer(str(python)) as peer:
        under = profile_of_peer(peer)
        if under not in scenario.profiles:
            pytest.skip(f"the scenario does not hold for {under}")
        found = Explorer(scenario, under, bounds=Bounds(kinds=("crashes",))).explore()
        whose = {one.invariant: compare(peer, scenario, under, one, under).whose for one in found.failures}
    assert whose == {"no-claim-leaked": "STATEK's", "handlers-at-least-once": "STATEK's"}


def test_what_cannot_be_played_there_is_not_labelled() -> None:
    scenario = claim()
    with Peer(str(PYTHONS[-1])) as peer:
        for deviation in (Deviation(kill=5, silent=1), Deviation(limit=LimitName.MAX_TURNS, value=0)):
            failure = Failure(invariant="limits-hold", message="", deviations=(deviation,), times=1)
            assert compare(peer, scenario, "docs", failure, profile_of_peer(peer)).whose is None
