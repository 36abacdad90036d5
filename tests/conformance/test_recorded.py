"""Our runtime does what the real package was recorded doing, job by job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.differences import DIFFERENCES, declared
from tests.conformance.drive_reference import run_case
from tests.conformance.jobs import JOBS
from tests.conformance.recording import DIRECTORY, PROFILES, fields, recorded
from tests.tables import table_test

CASES = [(version, job) for version in PROFILES for job in JOBS]


@table_test(("version", "job"), CASES)
def test_our_runtime_leaves_what_the_real_package_left(version: str, job: str) -> None:
    theirs = fields(recorded(version)[job])
    ours = fields(run_case(JOBS[job], PROFILES[version]))
    known = declared(version, job)
    assert _without(ours, known) == _without(theirs, known)


@table_test(("version", "job"), [(version, entry.job) for entry in DIFFERENCES for version in entry.versions])
def test_a_declared_difference_is_still_there(version: str, job: str) -> None:
    theirs = fields(recorded(version)[job])
    ours = fields(run_case(JOBS[job], PROFILES[version]))
    gone = [field for field in declared(version, job) if _of(ours, field) == _of(theirs, field)]
    assert not gone, f"no longer different, take out of differences.py: {gone}"


@pytest.mark.parametrize("version", PROFILES)
def test_every_job_is_recorded_and_every_record_has_its_job(version: str) -> None:
    assert list(recorded(version)) == list(JOBS)


def test_every_record_is_compared() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.json")} == set(PROFILES)


def test_every_difference_names_a_job_and_says_why() -> None:
    assert [entry.job for entry in DIFFERENCES if entry.job not in JOBS or not entry.reason] == []


@pytest.mark.parametrize("profile", sorted(set(PROFILES.values())))
def test_a_job_leaves_the_same_when_it_runs_again(profile: str) -> None:
    job = JOBS["interrupted_parent"]
    assert run_case(job, profile) == run_case(job, profile)


def _of(flat: dict[str, Any], field: str) -> object:
    """Return a field; one that is missing is equal to nothing but a missing one."""
    return flat.get(field, ...)


def _without(flat: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {field: value for field, value in flat.items() if field not in known}
