"""Every crash point of built-in scenarios: what fails is what the page says is STATEK's.

A third of the scenarios; `statek-sim explore --kind crashes` plays all of them.
"""

from __future__ import annotations

import pytest

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.result import Explored
from statek_sim.explore.running import explore_all
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites

STATEKS = {
    "handlers-at-least-once": ("status DONE", "HandlerRan", "handlers taken off", "JobStopped", "JobCreated"),
    "no-claim-leaked": (),
    "limits-hold": ("LLMReplied",),
    "every-job-ends-or-waits": ("Released",),
    "the-system-converges": (),
    "no-claim-released-twice": (),
}
"""What the built-in suites break, and after what: nothing where it may be anything."""


EVERY = 3


@pytest.mark.slow
def test_what_a_crash_breaks_in_the_built_in_suites_is_documented() -> None:
    pairs = [
        (scenario, scenario.profiles[0])
        for scenario in load_or_fail([builtin_suites()])[::EVERY]
        if scenario.engine == "statek"
    ]
    limits = WatchdogLimits(cpu=300, wall=600)
    found = list(explore_all(pairs, bounds=Bounds(kinds=("crashes",)), limits=limits))
    assert [one.id for one in found if one.problem is not None] == []
    assert all(one.proven["crashes"].complete for one in found)
    assert sum(one.proven["crashes"].of for one in found) > 2_500
    assert undocumented(found) == []


def undocumented(found: list[Explored]) -> list[str]:
    return [
        f"{one.id}: {failure.invariant}: {failure.message}: {failure.deviations[0].what}"
        for one in found
        for failure in one.failures
        if failure.invariant not in STATEKS
        or (
            STATEKS[failure.invariant]
            and not failure.deviations[0].what.startswith(STATEKS[failure.invariant])
        )
    ]
