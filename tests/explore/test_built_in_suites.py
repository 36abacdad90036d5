"""Everything of all built-in scenarios, both engines, one thing at a time: what fails is what the page says does."""

from __future__ import annotations

import pytest

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.explore.result import Explored
from statek_sim.explore.workers import explore_all
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
LIMITS = WatchdogLimits(cpu=300, wall=600)


@pytest.mark.slow
def test_what_breaks_in_the_built_in_suites_is_documented() -> None:
    pairs = [
        (scenario, scenario.profiles[0])
        for scenario in load_or_fail([builtin_suites()])
        if scenario.engine == "statek"
    ]
    found = list(explore_all(pairs, limits=LIMITS))
    assert [one.id for one in found if one.problem is not None] == []
    assert all(
        one.proven[kind].complete for one in found for kind in ("crashes", "limits", "faults", "commits")
    )
    assert sum(one.proven["crashes"].of for one in found) > 10_500
    assert undocumented(found) == []


@pytest.mark.slow
def test_nothing_makes_a_hardened_agent_do_anything_twice() -> None:
    pairs = [
        (scenario, "hardened")
        for scenario in load_or_fail([builtin_suites()])
        if scenario.engine == "agent" and "hardened" in scenario.profiles
    ]
    found = list(explore_all(pairs, limits=LIMITS))
    assert [one.id for one in found if one.problem is not None] == []
    assert all(
        one.proven[kind].complete for one in found for kind in ("crashes", "limits", "faults", "orders")
    )
    assert sum(one.proven["crashes"].of for one in found) > 6_000
    broken = {failure.invariant for one in found for failure in one.failures}
    assert broken <= OF_A_LOST_MESSAGE
    failing = [failure for one in found for failure in one.failures]
    assert {one.action for failure in failing for one in failure.deviations} == {"kill"}


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
