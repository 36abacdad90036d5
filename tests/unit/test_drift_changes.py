"""What a drift report finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.drift.changes import Stop
from statek_sim.drift.subject import COUNTING, HARNESS, OFFERED
from tests.unit.drift_samples import CHAT, PLAIN, SILENT, report_of
from tests.unit.suite_samples import load


def test_changes_come_under_their_subjects_with_their_causes(tmp_path: Path) -> None:
    report = report_of(tmp_path, "1.2.5", "1.4.2")
    told = {
        section.subject: [(one.scenario.id, one.causes) for one in section.changes]
        for section in report.sections
    }
    assert told == {
        # The stop itself is no exception any more: a second reason for the chat to look different.
        HARNESS: [("chat", ("limit_extension", "harness_error_counts"))],
        COUNTING: [("silent", ("console_error_belongs_to",))],
        OFFERED: [],
    }
    assert (report.scenarios, report.changed, report.resized) == (4, 2, 1)


def test_a_scenario_that_only_sends_other_bytes_is_told_apart(tmp_path: Path) -> None:
    (section,) = [one for one in report_of(tmp_path, "1.2", "1.4").sections if one.subject == OFFERED]
    (resized,) = section.resized
    assert (resized.scenario.id, resized.causes) == ("tools", ("system_tools",))
    assert resized.after > resized.before


def test_the_same_on_both_sides_is_no_drift(tmp_path: Path) -> None:
    report = report_of(tmp_path, "1.4", "1.4.2")
    assert (report.sections, report.unseen) == ((), ())


def test_rules_that_no_scenario_shows_are_listed(tmp_path: Path) -> None:
    report = report_of(tmp_path, "docs", "1.4.2", text=PLAIN)
    assert [rule.name for rule in report.unseen] == ["limit_extension", "as_tool_binds_assignment", "storage"]
    assert report.unseen[0].doc.startswith("How completions extend a limit")


@pytest.mark.parametrize(("preset", "kinds"), [("default", ["stops"]), ("interactive", []), ("batch", [])])
def test_stops_are_those_under_the_preset(tmp_path: Path, preset: str, kinds: list[str]) -> None:
    report = report_of(tmp_path, "1.2.7", "1.4.2", preset=preset)
    assert [stop.kind for section in report.sections for stop in section.stops] == kinds


def test_a_scenarios_own_limits_do_not_count_under_the_preset(tmp_path: Path) -> None:
    own = CHAT.replace("    agents:", "    limits: {max_turns: 50}\n    agents:")
    report = report_of(tmp_path, "1.2.7", "1.4.2", text=own)
    (section,) = report.sections
    assert section.changes == ()
    assert [(stop.job, stop.before, stop.after) for stop in section.stops] == [
        ("main", "", "limit: max_turns")
    ]


def test_a_release_lets_a_job_go_on_that_another_one_hangs(tmp_path: Path) -> None:
    hanging = CHAT.replace(", warmup: 'print(\"open\")'", "").partition("    events:")[0]
    report = report_of(tmp_path, "1.2.5", "1.2.7", text=hanging)
    (stop,) = report.sections[0].stops
    assert (stop.kind, stop.before, stop.causes) == (
        "releases",
        "hang: Livelock",
        ("message_may_end_chat_log",),
    )


@pytest.mark.parametrize(
    ("before", "after", "calls", "kind"),
    [
        ("", "limit: max_turns", (6, 6), "stops"),
        ("hang: Livelock", "", (0, 2), "releases"),
        ("limit: max_turns", "limit: max_turns", (6, 3), "stops earlier"),
        ("limit: max_turns", "limit: max_turns", (3, 6), "stops later"),
        ("limit: max_turns", "failure: crash", (3, 3), "ends otherwise"),
    ],
)
def test_what_an_upgrade_does_to_a_job(
    tmp_path: Path, before: str, after: str, calls: tuple[int, int], kind: str
) -> None:
    (scenario,) = load(tmp_path, SILENT)
    stop = Stop(
        scenario=scenario,
        job="main",
        before=before,
        after=after,
        calls_before=calls[0],
        calls_after=calls[1],
        causes=(),
    )
    assert stop.kind == kind
