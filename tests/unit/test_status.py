from __future__ import annotations

import re

import pytest

from statek_sim.errors import TransitionError
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import TRANSITIONS, JobStatus, advance
from tests.tables import table_test
from tests.unit.runtime_samples import run_one

ALLOWED = [(old, new) for old in JobStatus for new in JobStatus if new in TRANSITIONS[old]]
FORBIDDEN = [(old, new) for old in JobStatus for new in JobStatus if new not in TRANSITIONS[old]]


def test_the_table_speaks_of_every_status() -> None:
    assert set(TRANSITIONS) == set(JobStatus)
    assert len(ALLOWED) + len(FORBIDDEN) == len(JobStatus) ** 2


@table_test(("old", "new"), ALLOWED)
def test_an_allowed_change_gives_the_new_status(old: JobStatus, new: JobStatus) -> None:
    assert advance(old, new, job_id="j") is new


@table_test(("old", "new"), FORBIDDEN)
def test_a_change_that_is_not_in_the_table_is_refused(old: JobStatus, new: JobStatus) -> None:
    options = ", ".join(sorted(TRANSITIONS[old]))
    message = f"job 'j': {old} -> {new} is not allowed (from {old}: {options})"
    with pytest.raises(TransitionError, match=f"^{re.escape(message)}$"):
        advance(old, new, job_id="j")


def test_a_job_refuses_a_forbidden_change_and_stays_where_it_is() -> None:
    job: Job = run_one("exit(1)")
    with pytest.raises(TransitionError, match=r"^job 'job-1': DONE -> SUSPENDED is not allowed"):
        job.life.move_to(JobStatus.SUSPENDED)
    assert job.status is JobStatus.DONE


def test_moving_to_the_present_status_changes_nothing_and_leaves_no_trace() -> None:
    job = run_one("exit(1)")
    before = len(list(job.trace))
    job.life.move_to(JobStatus.DONE)
    assert len(list(job.trace)) == before
