"""Stores in a database: versions of the tables, frozen processes, full disks, damage."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.errors import BadStore, Damaged, Held
from statek_sim.store.database import Row, Sqlite
from statek_sim.store.open import open_store
from statek_sim.store.postgres import Postgres
from statek_sim.store.protocol import Changes, Lease
from statek_sim.store.sql import MIGRATIONS, SqlStore
from tests.says import line_with
from tests.store.conftest import MakeStore
from tests.store.test_sessions import entry, receipt

ABOUT = {"what": "a test"}


def test_who_looks_for_a_run_holds_one_at_a_time(empty_postgres: str) -> None:
    meanwhile: list[Lease | None] = []

    def is_gone(worker: str) -> bool:
        """Ask as another worker does, while this one has not decided."""
        if worker == "x" and not meanwhile:
            meanwhile.append(second.claim_next(worker="b"))
        return worker == "x"

    def runs(is_gone: Callable[[str], bool]) -> SqlStore:
        database = Postgres(empty_postgres, address="here")
        return SqlStore(database, clock=lambda: 0.0, lease=60.0, is_gone=is_gone)

    first, second = runs(is_gone), runs(lambda worker: worker == "x")
    with closing(first), closing(second):
        for name in ("one", "two"):
            first.claim(name, worker="x", about=ABOUT)
        mine = first.claim_next(worker="a")
    assert [lease and lease.run for lease in (mine, *meanwhile)] == ["one", "two"]


@pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)
def test_events_that_are_missing_are_damage(make_store: MakeStore) -> None:
    store = make_store()
    assert isinstance(store, SqlStore)
    store.commit(store.claim("one", worker="a", about=ABOUT), Changes(events=["x", "y"]))
    store._database.execute("DELETE FROM statek_events WHERE number = 1")
    with pytest.raises(Damaged, match=line_with("2 events", "1 are stored", "backup")):
        store.load("one")


@pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)
def test_tables_from_the_future_and_of_somebody_else_are_refused(make_store: MakeStore) -> None:
    store = make_store()
    assert isinstance(store, SqlStore)
    store._database.execute("UPDATE statek_store SET version = 99")
    with pytest.raises(BadStore, match=line_with("version 99", f"up to {len(MIGRATIONS)}")):
        make_store()
    store._database.execute("UPDATE statek_store SET format = 'other'")
    with pytest.raises(BadStore, match=line_with("table statek_store", "'other'")):
        make_store()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(Damaged, match=line_with("SQLite", "file is not a database")):
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
    lease = store.claim("one", worker="a", about=ABOUT)
    store.commit(lease, Changes(rows={f"e{n}": "x" * 500 for n in range(200)}))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 5 : 4096 * 20] = b"\xff" * (4096 * 15)
    path.write_bytes(content)
    with (
        pytest.raises(Damaged, match=line_with("SQLite", "damaged")),
        closing(open_store(f"sqlite:{path}", clock=lambda: 0.0)) as damaged,
    ):
        damaged.load("one")


class FullOnce(Sqlite):
    """A database whose next `COMMIT` fails and leaves the transaction open, as SQLite does on a full disk."""

    full = False

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        if self.full and statement == "COMMIT":
            self.full = False
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(statement, values)


def test_a_commit_that_fails_keeps_nothing_and_leaves_the_store_usable(tmp_path: Path) -> None:
    database = FullOnce(tmp_path / "sessions.db")
    with closing(SessionStore(SqlStore(database, clock=lambda: 0.0))) as store:
        lease = store.claim("s", worker="a", plan="p")
        database.full = True
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            store.save(lease, entry(1))
        assert store.latest("s") is None
        assert store.save(lease, entry(2)) == 1


def test_a_process_that_is_frozen_in_a_transaction_of_sqlite_is_told_as_that(tmp_path: Path) -> None:
    with closing(SessionStore(SqlStore(frozen := Sqlite(tmp_path / "s.db"), clock=float))) as store:
        lease = store.claim("s", worker="a", plan="p")
        hurried = SessionStore(SqlStore(Sqlite(tmp_path / "s.db", wait=0.05), clock=float))
        frozen.execute("BEGIN IMMEDIATE")
        why = r"/s\.db: another process has held this database for 0\.05 s \(database is locked\); it is stuck in a"
        with closing(hurried):
            with pytest.raises(Held, match=why):
                hurried.save(lease, entry())
            frozen.execute("ROLLBACK")
            assert hurried.save(lease, entry()) == 1


def test_a_wait_below_a_thousandth_of_a_second_is_no_wait_for_ever(empty_postgres: str) -> None:
    from statek_sim.store.postgres import Postgres

    with closing(Postgres(empty_postgres, address="PostgreSQL", wait=0.0004)) as hurried:
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            assert hurried.execute(f"SHOW {setting}") == [("1ms",)]


def test_a_connection_that_is_frozen_in_a_transaction_keeps_nobody_out(empty_postgres: str) -> None:
    from statek_sim.store.postgres import Postgres

    with closing(
        SessionStore(
            SqlStore(frozen := Postgres(empty_postgres, address="PostgreSQL", wait=0.6), clock=float)
        )
    ) as store:
        store.claim("s", worker="a", plan="p")
        frozen.execute("BEGIN")
        frozen.execute("SELECT id FROM statek_runs FOR UPDATE")
        why = r"^PostgreSQL: another connection has held a lock for 0\.1 s; it is stuck"
        hurried = SessionStore(
            SqlStore(Postgres(empty_postgres, address="PostgreSQL", wait=0.1), clock=lambda: 100.0)
        )
        with closing(hurried), pytest.raises(Held, match=why):
            hurried.claim("s", worker="b", plan="p")
        with closing(
            SessionStore(
                SqlStore(Postgres(empty_postgres, address="PostgreSQL", wait=10), clock=lambda: 100.0)
            )
        ) as patient:
            assert patient.claim("s", worker="b", plan="p").fence == 2


# -- databases that are not as they were left ---------------------------------------------------------------------


def saved_database(path: Path) -> Path:
    """Make a database with a session of three checkpoints and two receipts."""
    with closing(SessionStore(SqlStore(Sqlite(path), clock=float))) as store:
        lease = store.claim("s", worker="a", plan="p")
        for number in (1, 2, 3):
            store.save(lease, entry(number))
        store.note(lease, receipt("1.1"))
        store.note(lease, receipt("1.2"))
        store.release(lease)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA ignore_check_constraints = 1")
        for statement in statements:
            raw.execute(statement)


def used(path: Path) -> list[str]:
    """Do with a store what workers do; return what each thing raised, and fail for what is no error of ours."""
    raised = []

    def save(store: SessionStore) -> None:
        lease = store.claim("s", worker="b", plan="p")
        store.note(lease, receipt("1.3"))
        store.save(lease, entry(4))
        store.renew(lease)
        store.prune(lease, 1)
        store.release(lease)

    def take(store: SessionStore) -> None:
        if lease := store.claim_next(worker="c"):
            store.release(lease)

    acts: list[Callable[[SessionStore], object]] = [
        lambda store: store.latest("s"), lambda store: store.numbers("s"), lambda store: store.sessions(),
        lambda store: store.sessions("running"), take, save,
    ]  # fmt: skip
    for act in acts:
        try:
            with closing(SessionStore(SqlStore(Sqlite(path), clock=lambda: 1.0))) as store:
                act(store)
        except BadStore as error:
            raised.append(str(error))
    return raised


TABLES = "the tables do not have this package's schema: "


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (["DELETE FROM statek_store"], f"{TABLES}table statek_runs already exists"),
        (["DROP TABLE statek_store"], f"{TABLES}table statek_runs already exists"),
        (["DROP TABLE statek_store", "CREATE TABLE statek_store (x)"], f"{TABLES}no such column: format"),
        (["UPDATE statek_store SET version = 99"], "tables have version 99, but this"),
        (["DROP TABLE statek_rows"], f"{TABLES}no such table: "),
        (["ALTER TABLE statek_rows RENAME COLUMN content TO text"], f"{TABLES}no such column: content"),
    ],
    ids=["no row", "no table", "another's table", "from the future", "no rows", "column"],
)
def test_tables_that_are_not_the_stores_own_are_told_with_the_file(
    tmp_path: Path, statements: list[str], what: str
) -> None:
    path = saved_database(tmp_path / "sessions.db")
    change(path, *statements)
    raised = used(path)
    assert raised
    assert all(error.startswith(f"{path}: ") for error in raised)
    assert any(what in error for error in raised), raised


def test_a_file_that_is_no_database_of_checkpoints_is_told_with_its_name(tmp_path: Path) -> None:
    good = saved_database(tmp_path / "good.db").read_bytes()
    files = {
        "text.db": (b"These are the notes of a meeting.\n" * 40, Damaged, "file is not a database"),
        "torn.db": (good[: len(good) // 2 + 100], Damaged, "not a SQLite database, or damaged: "),
        "zeros.db": (good[:4096] + bytes(len(good) - 4096), Damaged, "or damaged: "),
    }
    for name, (content, kind, what) in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(kind, match=what) as fault:
            SessionStore(SqlStore(Sqlite(path), clock=float)).latest("s")
        assert str(fault.value).startswith(f"{path}: "), name
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE statek_runs (id INTEGER PRIMARY KEY, user TEXT)")
    assert all(error.startswith(f"{other}: {TABLES}table statek_runs already") for error in used(other))
    for path, what in (
        (tmp_path, "unable to open database file"),
        (tmp_path / "none" / "x.db", "unable to open"),
    ):
        with pytest.raises(BadStore, match=f"^{re.escape(str(path))}: {what}.*; use a readable"):
            Sqlite(path)
    closed = SessionStore(SqlStore(Sqlite(tmp_path / "good.db"), clock=float))
    closed.close()
    with pytest.raises(BadStore, match=r"good\.db: Cannot operate on a closed database"):
        closed.latest("s")


def test_whatever_stands_in_a_column_is_told_and_never_a_traceback(tmp_path: Path) -> None:
    """A value of another kind in each column of each table, which SQLite takes for most of them."""
    good = saved_database(tmp_path / "good.db")
    with closing(sqlite3.connect(good)) as raw:
        tables = ("statek_store", "statek_runs", "statek_rows")
        columns = [(table, row[1]) for table in tables for row in raw.execute(f"PRAGMA table_info({table})")]
    told = 0
    for table, column in columns:
        for value in ("'x'", "x'fffe'"):
            path = tmp_path / "x.db"
            for file in tmp_path.glob("x.db*"):
                file.unlink()
            path.write_bytes(good.read_bytes())
            with suppress(sqlite3.IntegrityError):
                change(
                    path,
                    f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) FROM {table})",
                )
                told += bool(used(path))
    assert told > 15


@pytest.mark.parametrize("byte", [b"\x85", b"\xff", b"\xc3"])
def test_a_database_whose_schema_is_no_text_is_damaged(tmp_path: Path, byte: bytes) -> None:
    path = tmp_path / "runs.db"
    SessionStore(SqlStore(Sqlite(path), clock=float)).close()
    content = path.read_bytes()
    assert b"CREATE TABLE" in content
    path.write_bytes(content.replace(b"CREATE TABLE ", b"CREATE TABLE" + byte))
    with pytest.raises(BadStore, match=r"runs\.db"):
        SessionStore(SqlStore(Sqlite(path), clock=float))
