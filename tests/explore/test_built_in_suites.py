"""All single crash points of all built-in scenarios, both engines: what fails is what the page says does."""

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


OF_A_LOST_MESSAGE = frozenset(
    {"agent-ends-as-undisturbed", "agent-every-run-ends", "agent-resumes-without-error"}
)
"""What a hardened agent breaks: a message or an answer of a person that came while its process was dead is lost."""
BOUNDS = Bounds(kinds=("crashes",))
LIMITS = WatchdogLimits(cpu=300, wall=600)


@pytest.mark.slow
def test_what_a_crash_breaks_in_the_built_in_suites_is_documented() -> None:
    pairs = [
        (scenario, scenario.profiles[0])
        for scenario in load_or_fail([builtin_suites()])
        if scenario.engine == "statek"
    ]
    found = list(explore_all(pairs, bounds=BOUNDS, limits=LIMITS))
    assert [one.id for one in found if one.problem is not None] == []
    assert all(one.proven["crashes"].complete for one in found)
    assert sum(one.proven["crashes"].of for one in found) > 9_700
    assert undocumented(found) == []


@pytest.mark.slow
def test_no_crash_makes_a_hardened_agent_do_anything_twice() -> None:
    pairs = [
        (scenario, "hardened")
        for scenario in load_or_fail([builtin_suites()])
        if scenario.engine == "agent" and "hardened" in scenario.profiles
    ]
    found = [one for one in explore_all(pairs, bounds=BOUNDS, limits=LIMITS) if one.problem is None]
    assert sum(one.proven["crashes"].tried for one in found) > 4_000
    broken = {failure.invariant for one in found for failure in one.failures}
    assert broken <= OF_A_LOST_MESSAGE


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
