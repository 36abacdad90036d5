"""Facts of both sides held against each other."""

from __future__ import annotations

from statek_sim.compare.facts import Difference, differences
from statek_sim.values import JSON


def facts(**job: JSON) -> dict[str, JSON]:
    return {"ledger": [], "jobs": {"main": {"status": "DONE", **job}}, "error": None}


def test_equal_facts_have_no_difference() -> None:
    assert differences(facts(turns=1), facts(turns=1)) == ()


def test_a_fact_of_a_job_is_a_field_of_its_own() -> None:
    assert differences(facts(turns=1), facts(turns=2)) == (Difference("jobs.main.turns", 1, 2),)


def test_the_error_of_the_run_is_told_before_what_follows_from_it() -> None:
    failed: dict[str, JSON] = {**facts(turns=2), "ledger": ["x"], "error": {"type": "X", "message": "y"}}

    fields = [difference.field for difference in differences(facts(turns=1), failed)]

    assert fields == ["error", "jobs.main.turns", "ledger"]


def test_a_job_that_only_one_side_has_is_told() -> None:
    more = facts()
    more["jobs"] = {"main": {"status": "DONE"}, "job-1": {"status": "READY"}}

    assert differences(facts(), more) == (
        Difference("jobs", ["main"], ["main", "job-1"]),
        Difference("jobs.job-1.status", "(absent)", "READY"),
    )


def test_machine_dependent_text_does_not_differ() -> None:
    ours, theirs = (
        facts(console=["Job main failed with error: x"]),
        facts(console=["Job 8d2f failed with error: x"]),
    )

    assert differences(ours, theirs) == ()
