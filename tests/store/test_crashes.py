"""A process is killed at every moment, and the agent's result is that of one that nobody killed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from statek_sim.agent.checkpoints.seals import Entry
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.files import FileStore
from tests.store.simulated_disk import Killed, SimulatedDisk
from tools.crashes import (
    BRIEF,
    LADDER_EVERY,
    UNSYNCED_EVERY,
    UP,
    UP_A_LADDER,
    Errand,
    Tally,
    World,
    files,
    fresh_postgres,
    kill_in_database,
    kill_on_disk,
    lived,
    row,
    sqlite_files,
    unsynced,
)
from tools.postgres import ROOT
from tools.recoveries import kill_again

SAMPLED = 41
"""Every so manieth moment; `slow` tests take all of them."""


@pytest.fixture(
    params=[pytest.param(SAMPLED), pytest.param(1, marks=pytest.mark.slow)], ids=["sampled", "all"]
)
def every(request: pytest.FixtureRequest) -> int:
    chosen: int = request.param
    return chosen


def check_page(found: Tally, every: int) -> None:
    """What `crashes.md` says of a store is what was found, where all moments were tried."""
    if every == 1:
        assert (
            row(found) in (ROOT / "tests" / "store" / "crashes.md").read_text(encoding="utf-8").splitlines()
        )


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


@pytest.mark.parametrize(
    ("kills", "one_in"),
    [pytest.param(3, 5, id="sampled"), pytest.param(2, 1, id="all", marks=pytest.mark.slow)],
)
def test_killed_again_while_it_resumes_a_run_ends_as_if_it_had_not_been(kills: int, one_in: int) -> None:
    told = (ROOT / "tests" / "store" / "crashes.md").read_text(encoding="utf-8").splitlines()
    for found in kill_again(kills, every=one_in):
        assert found.lost == []
        assert found.states > 2
        assert one_in > 1 or row(found) in told


@pytest.mark.parametrize("every", [97, pytest.param(LADDER_EVERY, marks=pytest.mark.slow)])
def test_killed_on_its_way_up_a_ladder_a_run_ends_as_if_it_had_not_been(every: int) -> None:
    found = kill_on_disk(f"files{UP_A_LADDER}", files, every=every, errand=UP)
    assert found.lost == []
    check_page(found, 1 if every == LADDER_EVERY else every)
    assert found.states > 30


@pytest.mark.parametrize(
    ("errand", "one_in", "again", "least"),
    [
        pytest.param(UP, 19, False, 8, id="ladder"),
        pytest.param(BRIEF, 31, True, 6, id="twice"),
        pytest.param(UP, 61, True, 4, id="twice-on-a-ladder"),
        pytest.param(UP, LADDER_EVERY, False, 15, id="ladder-often", marks=pytest.mark.slow),
        pytest.param(BRIEF, 9, True, 100, id="twice-often", marks=pytest.mark.slow),
    ],
)
def test_killed_in_sqlite_on_other_errands_and_twice_a_run_ends_as_if_it_had_not_been(
    errand: Errand, one_in: int, again: bool, least: int
) -> None:
    with sqlite_files() as fresh:
        found = kill_in_database(f"SQLite{UP_A_LADDER}", fresh, every=one_in, errand=errand, again=again)
    assert found.lost == []
    assert found.states > least
    if one_in == LADDER_EVERY:
        check_page(found, 1)


@pytest.mark.parametrize("every", [10, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_again_on_its_way_up_a_ladder_a_run_ends_as_if_it_had_not_been(every: int) -> None:
    for found in kill_again(2, errand=UP, every=every):
        assert (found.lost, found.states > 1) == ([], True)


def save_until_killed(disk: SimulatedDisk) -> None:
    store = SessionStore(FileStore(disk, clock=lambda: 0.0))
    lease = store.claim("s", worker="w", plan="p")
    for number in (1, 2, 3):
        store.save(lease, Entry(point="began", status="running", at=0.0, state={"number": number}))


def test_two_kills_between_a_checkpoint_and_what_says_that_it_is_there_leave_a_session_whole() -> None:
    whole = SimulatedDisk()
    save_until_killed(whole)
    kills = [(first, second) for first in range(whole.operations) for second in range(whole.operations)]
    for first, second in kills[:: len(kills) // 300]:
        dying = SimulatedDisk(dies_at=first)
        with pytest.raises(Killed):
            save_until_killed(dying)
        again = dying.again().again(dies_at=second)
        with suppress(Killed):
            save_until_killed(again)
        store = SessionStore(FileStore(again.again(), clock=lambda: 0.0))
        lease, kept = store.claim("s", worker="w", plan="p"), store.latest("s")
        newest = 0 if kept is None else kept.checkpoint.number
        assert [*store.numbers("s")] == [*range(1, newest + 1)]
        assert store.save(lease, Entry(point="began", status="running", at=0.0, state={})) == newest + 1


def test_what_comes_of_a_check_whether_a_call_happened_is_not_taken_for_what_came_of_the_call() -> None:
    calling = SimulatedDisk(dies_at=135)
    with pytest.raises(Killed):
        lived(lambda: files(calling), World())
    checked = 0
    for second in range(10, 40):
        resuming, world = calling.again().again(dies_at=second), World()
        with pytest.raises(Killed):
            lived(lambda: files(resuming), world)  # noqa: B023
        rest = resuming.again()
        checked += any(b"check of 1.2" in content for content in rest.files.values())
        lived(lambda: files(rest), world)  # noqa: B023
        assert sorted(world.done) == ["paid Ann 700", "sent Paid."]
    assert checked


@pytest.mark.parametrize("every", [200, pytest.param(UNSYNCED_EVERY, marks=pytest.mark.slow)])
def test_files_that_nobody_syncs_do_not_survive_a_loss_of_power(every: int) -> None:
    found = unsynced(every)
    assert found.survived < found.states
    check_page(found, 1 if every == UNSYNCED_EVERY else every)
