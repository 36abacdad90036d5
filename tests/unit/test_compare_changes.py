"""What a drift report finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from statek_sim.backends.record import RunRecord, UsageRecord
from statek_sim.compare.changes import Stop, causes, changed
from statek_sim.semantics import V1_2, V1_4, Profile
from tests.unit.compare_samples import CHAT, PLAIN, SILENT, report_of
from tests.unit.suite_samples import load


def test_changes_come_under_their_subjects_with_their_causes(tmp_path: Path) -> None:
    report = report_of(tmp_path, "1.2.5", "1.4.2")
    told = {
        section.subject: [(one.scenario.id, one.causes) for one in section.changes]
        for section in report.sections
    }
    assert told == {
        # The stop itself is no exception any more: a second reason for the chat to look different.
        "How long a job may run": [("chat", ("limit_extension", "harness_error_counts"))],
        "What counts as an exception": [("silent", ("console_error_belongs_to",))],
        "Tools offered to the model, and request size": [],
    }
    assert (report.scenarios, report.changed, report.resized) == (4, 2, 1)


def test_a_scenario_that_only_sends_other_bytes_is_told_apart(tmp_path: Path) -> None:
    (section,) = [
        one
        for one in report_of(tmp_path, "1.2", "1.4").sections
        if one.subject == "Tools offered to the model, and request size"
    ]
    (resized,) = section.resized
    assert (resized.scenario.id, resized.causes) == ("tools", ("system_tools",))
    assert resized.after > resized.before


def test_the_same_on_both_sides_is_no_drift(tmp_path: Path) -> None:
    report = report_of(tmp_path, "1.4", "1.4.2")
    assert (report.sections, report.unseen) == ((), ())


def test_rules_that_no_scenario_shows_are_listed(tmp_path: Path) -> None:
    report = report_of(tmp_path, "docs", "1.4.2", text=PLAIN)
    assert [rule.name for rule in report.unseen] == [
        "limit_extension",
        "as_tool_binds_assignment",
        "prints_stay_apart",
        "storage",
    ]
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


RULES = ("limit_extension", "waiting_job_is_dormant", "plain_notifications")


def record(digest: str) -> RunRecord:
    return RunRecord(
        scenario="s",
        profile="p",
        seed=0,
        backend="reference",
        jobs={},
        handlers=(),
        items={},
        leaked_claims=(),
        ledger=(),
        llm_calls=0,
        idle=False,
        settled=True,
        worker=None,
        usage=UsageRecord(),
        digest=digest,
        events=(),
    )


def found(outcome: str) -> tuple[str, ...]:
    """Return the causes when a run's outcome is the value of this expression about the profile `p`."""

    def run(profile: Profile) -> RunRecord:
        return record(str(eval(outcome, {"p": profile})))

    then = run(V1_4).digest
    return causes(V1_2, V1_4, RULES, run, lambda one: one.digest == then)


def test_one_rule_that_is_enough_is_the_cause() -> None:
    assert found("p.waiting_job_is_dormant") == ("waiting_job_is_dormant",)


def test_rules_that_only_do_it_together_are_all_named() -> None:
    both = "p.waiting_job_is_dormant and p.plain_notifications"
    assert found(both) == ("waiting_job_is_dormant", "plain_notifications")


def test_of_two_rules_that_are_each_enough_the_later_one_is_named() -> None:
    assert found("p.waiting_job_is_dormant or p.plain_notifications") == ("plain_notifications",)


def test_nothing_is_the_cause_of_no_difference() -> None:
    assert found("1") == ()


def test_a_changed_profile_has_the_others_name_and_only_these_rules() -> None:
    assert changed(V1_2, V1_4, ["system_tools"]) == replace(V1_2, name="1.4", system_tools="1.4")
