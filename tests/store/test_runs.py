"""Runs in a store: leases, revisions, takeovers, versions of the tables, damage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.postgres import Postgres
from statek_sim.errors import BadStore, DamagedStore, RunHeld, RunTakenOver
from statek_sim.store.opening import open_store, shown
from statek_sim.store.pieces import PIECE, changed_pieces
from statek_sim.store.sql import SqlRuns
from statek_sim.store.store import Changes, Lease
from statek_sim.store.tables import MIGRATIONS
from statek_sim.store.worker import is_gone, worker_name
from tests.checkpoints.conftest import Seconds
from tests.store.conftest import MakeRuns
from tests.store.dying import in_a_process

ABOUT = {"what": "a test"}


def test_what_was_committed_is_there_for_another_process(make_runs: MakeRuns) -> None:
    store = make_runs()
    lease = store.begin("one", ABOUT, worker="a")
    lease = store.commit(lease, Changes(rows={"root": "1", "e1": "2"}, events=["x"]))
    store.commit(lease, Changes(rows={"e1": "3", "e2": "\\u0000"}, gone=["root"], events=["y", "z"]))

    found = make_runs().load("one")
    assert (dict(found.rows), list(found.events)) == ({"e1": "3", "e2": "\\u0000"}, ["x", "y", "z"])
    assert (found.revision, found.status, dict(found.about)) == (2, "running", ABOUT)


def test_a_run_that_somebody_works_on_is_refused_to_others_until_the_lease_runs_out(
    make_runs: MakeRuns, seconds: Seconds
) -> None:
    first, second = make_runs(), make_runs()
    first.begin("one", ABOUT, worker="a")
    with pytest.raises(RunHeld, match=r"run 'one': worker 'a' works on it, and its lease runs for 60 s yet"):
        second.claim("one", worker="b")
    assert second.claim_next(worker="b") is None
    seconds.now += 61
    taken = second.claim_next(worker="b")
    assert taken is not None
    assert (taken.run, taken.fence) == ("one", 2)


def test_a_worker_that_was_taken_over_commits_nothing_more(make_runs: MakeRuns, seconds: Seconds) -> None:
    first, second = make_runs(), make_runs()
    late = first.commit(first.begin("one", ABOUT, worker="a"), Changes(events=["x"]))
    seconds.now += 61
    second.claim("one", worker="b")
    with pytest.raises(RunTakenOver, match=r"has taken it over from 'a' \(revision 1\)"):
        first.commit(late, Changes(events=["late"]))
    first.release(late)
    assert list(second.load("one").events) == ["x"]
    assert second.runs()[0].worker == "b"


def test_a_fence_that_cannot_be_read_brings_no_old_lease_back(tmp_path: Path, seconds: Seconds) -> None:
    file = tmp_path / "damaged.db"
    first, second = (open_store(f"sqlite:{file}", clock=seconds, lease=60.0) for _ in range(2))
    with closing(first), closing(second):
        late = first.begin("one", ABOUT, worker="a")
        seconds.now += 61
        with closing(sqlite3.connect(file)) as damaging, damaging:
            # SQLite keeps any value in any column.
            damaging.execute("UPDATE statek_runs SET fence = 'words'")
        second.claim("one", worker="b")
        with pytest.raises(RunTakenOver, match="has taken it over from 'a'"):
            first.commit(late, Changes(events=["late"]))


def test_a_worker_whose_revision_is_old_commits_nothing(make_runs: MakeRuns) -> None:
    store = make_runs()
    old = store.begin("one", ABOUT, worker="a")
    store.commit(old, Changes(events=["x"]))
    with pytest.raises(RunTakenOver, match="another worker has taken it over"):
        store.commit(old, Changes(events=["again"]))
    assert list(store.load("one").events) == ["x"]


def test_no_run_is_given_to_two(make_runs: MakeRuns) -> None:
    first, second = make_runs(), make_runs()
    for name in ("one", "two"):
        first.release(first.begin(name, ABOUT, worker="x"))
    claims = [store.claim_next(worker=name) for store, name in ((first, "a"), (second, "b"), (first, "a"))]
    assert [None if claim is None else claim.run for claim in claims] == ["one", "two", None]


def test_who_looks_for_a_run_holds_one_at_a_time(empty_postgres: str) -> None:
    meanwhile: list[Lease | None] = []

    def is_gone(worker: str) -> bool:
        """Ask as another worker does, while this one has not decided."""
        if worker == "x" and not meanwhile:
            meanwhile.append(second.claim_next(worker="b"))
        return worker == "x"

    def runs(is_gone: Callable[[str], bool]) -> SqlRuns:
        database = Postgres(empty_postgres)
        return SqlRuns(database, address="here", clock=lambda: 0.0, lease=60.0, is_gone=is_gone)

    first, second = runs(is_gone), runs(lambda worker: worker == "x")
    with closing(first), closing(second):
        for name in ("one", "two"):
            first.begin(name, ABOUT, worker="x")
        mine = first.claim_next(worker="a")
    assert [lease and lease.run for lease in (mine, *meanwhile)] == ["one", "two"]


@pytest.mark.parametrize(
    ("address", "visible"),
    [
        ("sqlite:runs.db", "sqlite:runs.db"),
        ("postgresql://me:secret@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?user=me&password=secret&sslmode=require", "postgresql://host/db?user=me&password=***&sslmode=require"),
        ("postgres://me@host/db?sslpassword=a@b", "postgres://me@host/db?sslpassword=***"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_passwords(address: str, visible: str) -> None:
    assert shown(address) == visible


def test_a_run_that_ended_is_nobodys_work(make_runs: MakeRuns) -> None:
    store = make_runs()
    store.release(store.commit(store.begin("one", ABOUT, worker="a"), Changes(status="ended")))
    assert store.claim_next(worker="b") is None
    assert store.runs()[0].status == "ended"


def test_the_lease_of_a_process_that_is_no_more_need_not_run_out(make_runs: MakeRuns, address: str) -> None:
    def begin() -> None:
        open_store(address, clock=lambda: 0.0).begin("one", ABOUT, worker=worker_name())

    in_a_process(begin)
    listed = make_runs().runs()[0]
    assert (listed.worker, listed.left) == ("", 0.0)
    claimed = make_runs().claim_next(worker=worker_name())
    assert claimed is not None
    assert claimed.run == "one"


def test_only_processes_of_this_machine_can_be_known_to_be_dead() -> None:
    assert not is_gone(worker_name())
    assert not is_gone("elsewhere/1")
    assert not is_gone("")


def test_a_worker_of_another_container_of_the_same_name_is_not_gone() -> None:
    """Its process number says nothing here; nor does that of a process before the machine was started anew."""
    reader, writer = os.pipe()

    def tell() -> None:
        os.write(writer, worker_name().encode())

    in_a_process(tell)
    os.close(writer)
    with open(reader, encoding="utf-8") as told:
        name = told.read()
    node, number, world, start, token = name.split("/")
    assert is_gone(name)
    assert not is_gone("/".join((node, number, world[::-1] + "0", start, token)))
    assert not is_gone("/".join((node, number, "", start, token)))
    assert not is_gone(f"{node}/{number}")


def test_a_process_that_has_the_number_of_a_dead_one_is_not_that_worker() -> None:
    node, number, world, start, token = worker_name().split("/")
    assert is_gone("/".join((node, number, world, f"{int(start) - 1}", token)))
    assert not is_gone("/".join((node, number, world, start, token)))


def test_a_process_of_the_same_number_elsewhere_is_another_worker(make_runs: MakeRuns) -> None:
    """Both are process 1 of a host of one name: the lease of one is no lease of the other."""
    mine = worker_name()
    other = mine.rpartition("/")[0] + "/ffffffff"
    make_runs().begin("one", ABOUT, worker=other)
    with pytest.raises(RunHeld, match="works on it, and its lease runs for 60 s yet"):
        make_runs().claim("one", worker=mine)
    assert worker_name() == mine


def test_a_second_run_of_one_name_is_refused(make_runs: MakeRuns) -> None:
    store = make_runs()
    store.begin("one", ABOUT, worker="a")
    with pytest.raises(
        BadStore, match="run 'one' is in the store already: go on with it, or name another store"
    ):
        store.begin("one", ABOUT, worker="a")
    with pytest.raises(BadStore, match=r"there is no run 'two'; there are: 'one'$"):
        store.claim("two", worker="a")


def test_events_that_are_missing_are_damage(make_runs: MakeRuns) -> None:
    store = make_runs()
    store.commit(store.begin("one", ABOUT, worker="a"), Changes(events=["x", "y"]))
    store._database.execute("DELETE FROM statek_events WHERE number = 1")
    with pytest.raises(
        DamagedStore, match="2 events were committed, and 1 are there; put a copy of the store back"
    ):
        store.load("one")


def test_tables_of_version_1_are_brought_up_to_date(make_runs: MakeRuns) -> None:
    store = make_runs()
    store.commit(store.begin("one", ABOUT, worker="a"), Changes(events=["x"]))
    store._database.execute("DROP INDEX statek_runs_free")
    store._database.execute("UPDATE statek_store SET version = 1")
    newer = make_runs()
    assert list(newer.load("one").events) == ["x"]
    assert newer._database.execute("SELECT version FROM statek_store") == [(len(MIGRATIONS),)]


def test_long_rows_of_version_2_are_in_pieces_before_anything_of_them_changes(make_runs: MakeRuns) -> None:
    store = make_runs()
    lengths = [PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5]
    rows = {f"e{length}": (str(length) * length)[:length] for length in lengths}
    lease = store.commit(store.begin("one", ABOUT, worker="a"), Changes(rows={**rows, "short": "{}"}))
    store._database.execute("UPDATE statek_store SET version = 2")
    newer = make_runs()
    assert newer.load("one").rows == {**rows, "short": "{}"}
    longest = f"e{lengths[-1]}"
    for now in (rows[longest] + "more", rows[longest][: PIECE + 9]):
        changed, gone = changed_pieces(longest, newer.load("one").rows[longest], now)
        lease = newer.commit(lease, Changes(rows=changed, gone=gone))
        assert newer.load("one").rows == {**rows, longest: now, "short": "{}"}


def test_tables_from_the_future_and_of_somebody_else_are_refused(make_runs: MakeRuns) -> None:
    store = make_runs()
    store._database.execute("UPDATE statek_store SET version = 99")
    with pytest.raises(
        BadStore, match=rf"tables have version 99, and this package knows up to {len(MIGRATIONS)}"
    ):
        make_runs()
    store._database.execute("UPDATE statek_store SET format = 'other'")
    with pytest.raises(BadStore, match=r"it says of itself .*'other'.*; name another store"):
        make_runs()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("runs.db", r"^--store 'runs.db': expected 'sqlite:PATH' or 'postgresql://USER@HOST/DATABASE'$"),
        ("sqlite:", r"^--store 'sqlite:': expected 'sqlite:PATH'"),
        ("sqlite:/no/such/runs.db", r"^sqlite:/no/such/runs.db: folder /no/such does not exist; make it first$"),
        ("postgresql://me:pw@localhost:1/x", r"^postgresql://me@localhost:1/x: .*; check the address and the server$"),
    ],
)  # fmt: skip
def test_an_address_that_leads_nowhere_says_what_to_do(address: str, told: str) -> None:
    with pytest.raises(BadStore, match=f"(?s){told}"):
        open_store(address, clock=lambda: 0.0)


def test_a_password_is_not_shown() -> None:
    assert shown("postgresql://me:secret@host/x") == "postgresql://me@host/x"
    assert shown("sqlite:/a/b@c.db") == "sqlite:/a/b@c.db"


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(
        DamagedStore, match="it is no SQLite database, or it is damaged: file is not a database"
    ):
        open_store(f"sqlite:{path}", clock=lambda: 0.0)
    assert path.read_text() == "not a database, " * 100


def test_a_database_of_somebody_else_gets_tables_beside_its_own(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("CREATE TABLE runs (mine TEXT)")
    open_store(f"sqlite:{path}", clock=lambda: 0.0).close()
    with closing(sqlite3.connect(path)) as own:
        assert own.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]


def test_a_torn_page_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = open_store(f"sqlite:{path}", clock=lambda: 0.0)
    lease = store.begin("one", ABOUT, worker="a")
    store.commit(lease, Changes(rows={f"e{n}": "x" * 500 for n in range(200)}))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 5 : 4096 * 20] = b"\xff" * (4096 * 15)
    path.write_bytes(content)
    with (
        pytest.raises(DamagedStore, match="it is no SQLite database, or it is damaged"),
        closing(open_store(f"sqlite:{path}", clock=lambda: 0.0)) as damaged,
    ):
        damaged.load("one")
