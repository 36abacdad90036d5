"""A process is killed at every moment, and the agent's result is that of one that nobody killed."""

from __future__ import annotations

from functools import partial

import pytest

from statek_sim.agent.checkpoints.document import DocumentStore
from tools.crashes import (
    NoSync,
    Tally,
    files,
    fresh_postgres,
    kill_in_database,
    kill_on_disk,
    row,
    sqlite_files,
)
from tools.postgres import ROOT

SAMPLED = 41
"""Every so manieth moment; `slow` tests take all of them."""


@pytest.fixture(
    params=[pytest.param(SAMPLED), pytest.param(1, marks=pytest.mark.slow)], ids=["sampled", "all"]
)
def every(request: pytest.FixtureRequest) -> int:
    chosen: int = request.param
    return chosen


def check_page(found: Tally, every: int) -> None:
    """What the page says of a store is what was found, where all moments were tried."""
    if every == 1:
        assert row(found) in (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8").splitlines()


def test_killed_between_file_operations_with_power_lost_a_run_ends_as_if_it_had_not_been(every: int) -> None:
    found = kill_on_disk("files", files, every=every)
    assert found.lost == []
    check_page(found, every)
    assert found.states > 100


def test_killed_before_a_statement_of_sqlite_a_run_ends_as_if_it_had_not_been(every: int) -> None:
    with sqlite_files() as fresh:
        found = kill_in_database("SQLite", fresh, every=every)
    assert found.lost == []
    check_page(found, every)
    assert found.points * every > 100


def test_killed_before_a_statement_of_postgresql_a_run_ends_as_if_it_had_not_been(
    empty_postgres: str, every: int
) -> None:
    found = kill_in_database("PostgreSQL", partial(fresh_postgres, empty_postgres), every=every)
    assert found.lost == []
    check_page(found, every)
    assert found.points * every > 100


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True, reason="docs/checkpoints.md: a second kill, while a run resumes, can leave what is refused"
)
def test_killed_again_while_it_resumes_a_run_ends_as_if_it_had_not_been() -> None:
    found = kill_on_disk("files", files, every=SAMPLED, twice=True)
    assert found.lost == []


def test_the_documents_store_loses_what_ours_keeps() -> None:
    found = kill_on_disk("document", DocumentStore, every=SAMPLED)
    assert 0 < found.survived < found.states


def test_files_that_nobody_syncs_do_not_survive_a_loss_of_power() -> None:
    found = kill_on_disk("files", files, every=SAMPLED, made=NoSync)
    assert found.survived < found.states
