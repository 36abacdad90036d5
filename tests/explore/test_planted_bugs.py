"""Planted bugs: all found, all small, and the page shows the table that the command makes."""

from __future__ import annotations

import pytest

from tools.planted_bugs import BEGIN, BUGS, END, MOST_DEVIATIONS, PAGE, find, scenario_named, table


@pytest.mark.slow
def test_every_planted_bug_is_found_and_small_and_the_table_is_the_pages() -> None:
    findings = [find(bug, scenario_named(bug.scenario)) for bug in BUGS]
    assert len(findings) >= 12
    assert [one.bug.name for one in findings if one.invariant is None] == []
    assert max(len(one.deviations) for one in findings) <= MOST_DEVIATIONS
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == table(findings)


def test_bugs_are_in_every_part() -> None:
    assert {bug.part for bug in BUGS} == {"scheduler", "store", "handlers", "claims", "limits"}


def test_a_bug_is_gone_when_it_was_looked_for() -> None:
    bug = next(one for one in BUGS if one.name == "guard-says-yes")
    scenario = scenario_named(bug.scenario)
    assert find(bug, scenario).invariant == find(bug, scenario).invariant == "no-claim-released-twice"
