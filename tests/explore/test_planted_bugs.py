"""Planted bugs: all found, and all small."""

from __future__ import annotations

import pytest

from tools.planted_bugs import BUGS, MOST_DEVIATIONS, find, scenario_named


@pytest.mark.slow
def test_every_planted_bug_is_found_and_small() -> None:
    findings = [find(bug, scenario_named(bug.scenario)) for bug in BUGS]
    assert len(findings) >= 12
    assert [one.bug.name for one in findings if one.invariant is None] == []
    assert max(len(one.deviations) for one in findings) <= MOST_DEVIATIONS


def test_bugs_are_in_every_part() -> None:
    assert {bug.part for bug in BUGS} == {"scheduler", "store", "handlers", "claims", "limits"}


def test_a_bug_is_gone_when_it_was_looked_for() -> None:
    bug = next(one for one in BUGS if one.name == "guard-says-yes")
    scenario = scenario_named(bug.scenario)
    assert find(bug, scenario).invariant == find(bug, scenario).invariant == "no-claim-released-twice"
