"""Headings of the drift report."""

from __future__ import annotations

from dataclasses import fields

from statek_sim.drift.subject import HARNESS, NOTICES, OFFERED, OTHER, SUBJECTS, subject_of
from statek_sim.semantics import Profile


def test_every_rule_has_a_subject() -> None:
    assert set(SUBJECTS) == {spec.name for spec in fields(Profile)} - {"name"}


def test_what_several_rules_cause_comes_under_the_first_of_their_subjects() -> None:
    assert subject_of(["limit_extension"]) == HARNESS
    assert subject_of(["system_tools", "plain_notifications"]) == NOTICES
    assert subject_of(["system_tools"]) == OFFERED
    assert subject_of(["a rule of the future"]) == subject_of([]) == OTHER
