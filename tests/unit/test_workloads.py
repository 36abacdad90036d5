"""The shipped workloads can be judged under any preset."""

from __future__ import annotations

from functools import cache
from typing import Final

from statek_sim.analysis.limits import Replay
from statek_sim.harness.limits import LIMITS, HarnessLimits
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import DEFAULT_PROFILES, Profile, Scenario
from statek_sim.suite.run import builtin_suites
from tests.tables import table_test

SUITE: Final = "workloads"
NO_LIMITS: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)
GENEROUS: Final = HarnessLimits(
    max_turns=40, max_exceptions=100, max_consecutive_exceptions=100, max_token_usage=1_000_000
)
"""More than twice what the most generous built-in preset allows."""


@cache
def workloads(tag: str = "") -> tuple[Scenario, ...]:
    found = load_or_fail([builtin_suites() / SUITE])
    return tuple(scenario for scenario in found if not tag or tag in scenario.tags)


@table_test("scenario", workloads(), ids=lambda scenario: scenario.id)
def test_a_workload_is_either_healthy_or_a_runaway_and_holds_under_every_profile(scenario: Scenario) -> None:
    assert len({"healthy", "runaway"} & set(scenario.tags)) == 1
    assert len(scenario.tags) > 1
    assert bool(scenario.goes_bad) == ("runaway" in scenario.tags)
    assert tuple(scenario.profiles) == DEFAULT_PROFILES
    assert not scenario.limits.model_fields_set
    assert not scenario.settings


@table_test("profile", DEFAULT_PROFILES)
@table_test("scenario", workloads("healthy"), ids=lambda scenario: scenario.id)
def test_a_healthy_workload_ends_by_itself_when_nothing_limits_it(
    scenario: Scenario, profile: Profile
) -> None:
    endings = Replay(scenario=scenario, profile=profile).endings(NO_LIMITS)
    assert {ending.stop for ending in endings.values()} <= {"exit", "final"}


@table_test("profile", DEFAULT_PROFILES)
@table_test("scenario", workloads("runaway"), ids=lambda scenario: scenario.id)
def test_a_runaway_has_replies_for_more_generous_presets_than_the_built_in_ones(
    scenario: Scenario, profile: Profile
) -> None:
    endings = Replay(scenario=scenario, profile=profile).endings(GENEROUS)
    assert {endings[name].stop for name in scenario.goes_bad} <= LIMITS
    assert not any(ending.script_ended or ending.failure for ending in endings.values())


def test_the_first_bad_turn_of_a_runaway_comes_before_every_built_in_preset_stops_it() -> None:
    for scenario in workloads("runaway"):
        for preset in ("default", "local", "interactive", "batch"):
            endings = Replay(scenario=scenario, profile="docs", preset=preset).endings()
            assert all(endings[name].turns > turn for name, turn in scenario.goes_bad.items())


def test_workloads_cover_the_kinds_that_a_preset_is_for() -> None:
    kinds = {tag for scenario in workloads("runaway") for tag in scenario.tags}
    assert kinds >= {
        "looping",
        "blind-retry",
        "growing-context",
        "failing-tools",
        "delegation",
        "claims",
        "chatty",
    }
    assert {"slow-useful", "long-conversation", "recovers"} <= {
        tag for scenario in workloads("healthy") for tag in scenario.tags
    }
