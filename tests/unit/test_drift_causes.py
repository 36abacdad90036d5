"""Which rules make the difference."""

from __future__ import annotations

from dataclasses import replace

from statek_sim.backends.record import RunRecord, UsageRecord
from statek_sim.drift.causes import causes, changed
from statek_sim.semantics import V1_2, V1_4, Profile

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
