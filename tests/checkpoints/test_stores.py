"""What every store promises: the same tests on files, SQLite and PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.database import Row, Sqlite
from statek_sim.agent.checkpoints.disk import RealDisk
from statek_sim.agent.checkpoints.files import FileStore
from statek_sim.agent.checkpoints.records import Entry, Lease
from statek_sim.agent.checkpoints.seal import MemoryAnchor, Sealer
from statek_sim.agent.checkpoints.session_files import SessionFiles
from statek_sim.agent.checkpoints.sql import SqlStore
from statek_sim.agent.checkpoints.store import CheckpointStore
from statek_sim.agent.effects import Receipt
from statek_sim.errors import BadInput, CheckpointError, Damaged, Fenced, Held, OtherPlan
from tests.checkpoints.conftest import MakeStore, Seconds


def entry(number: int = 1, **changes: object) -> Entry:
    told: dict[str, object] = {"point": "began", "status": "running", "at": 1.5, "state": {"number": number}}
    return Entry(**(told | changes))  # type: ignore[arg-type]


def receipt(key: str = "1.1", text: str = "done") -> Receipt:
    return Receipt(job="main", key=key, at=2.0, status="returned", text=text)


def test_what_was_saved_is_there_for_another_process(make_store: MakeStore) -> None:
    store = make_store()
    lease = store.claim("s", worker="a", plan="p")
    state = {"b": 1, "a": (1.0, "\0§", b"\xff", Decimal("1.10"), None, 1e300, 2**70)}
    assert store.save(lease, entry(state=state, progress={"completed": ["x"]}, results=[("x", "y")])) == 1
    store.note(lease, receipt())
    store.note(lease, receipt("1.2", "\ud800"))
    kept = make_store().latest("s")
    assert kept is not None
    assert kept.checkpoint.entry.state == state
    assert list(kept.checkpoint.entry.state) == ["b", "a"]
    assert (kept.checkpoint.number, kept.checkpoint.plan, kept.checkpoint.entry.at) == (1, "p", 1.5)
    assert kept.receipts == (receipt(), receipt("1.2", "\ud800"))


def test_receipts_are_those_since_the_newest_checkpoint(make_store: MakeStore) -> None:
    store = make_store()
    lease = store.claim("s", worker="a", plan="p")
    store.save(lease, entry())
    store.note(lease, receipt())
    store.save(lease, entry(2))
    kept = store.latest("s")
    assert kept is not None
    assert (kept.checkpoint.number, kept.receipts) == (2, ())


def test_a_session_that_was_never_saved_is_not_there(make_store: MakeStore) -> None:
    store = make_store()
    assert store.latest("s") is None
    store.claim("s", worker="a", plan="p")
    assert store.latest("s") is None


def test_numbers_are_numbers_and_not_texts(make_store: MakeStore) -> None:
    store = make_store()
    lease = store.claim("s", worker="a", plan="p")
    for number in range(1, 13):
        store.save(lease, entry(number))
    assert store.prune(lease, 4) == 8
    assert store.numbers("s") == [9, 10, 11, 12]
    kept = store.latest("s")
    assert kept is not None
    assert kept.checkpoint.entry.state == {"number": 12}


@pytest.mark.parametrize("keep", [0, -1])
def test_the_newest_checkpoint_is_never_pruned(make_store: MakeStore, keep: int) -> None:
    store = make_store()
    lease = store.claim("s", worker="a", plan="p")
    with pytest.raises(
        BadInput, match=rf"^prune keeps 1 checkpoint or more, not {keep}: the newest one is what a "
    ):
        store.prune(lease, keep)


def test_sessions_do_not_see_each_other(make_store: MakeStore) -> None:
    store = make_store()
    for session in ("a", "../a", "A/b", ".hidden"):
        store.save(store.claim(session, worker="w", plan="p"), entry(status="paused", state={"of": session}))
    for session in ("a", "../a", "A/b", ".hidden"):
        kept = store.latest(session)
        assert kept is not None
        assert kept.checkpoint.entry.state == {"of": session}
    assert list(store.sessions("paused")) == ["../a", ".hidden", "A/b", "a"]
    assert list(store.sessions("running")) == []


def test_a_session_of_another_task_is_refused(make_store: MakeStore) -> None:
    make_store().claim("s", worker="a", plan="old")
    with pytest.raises(
        OtherPlan, match=r"^session 's' was saved for plan old, and new is to be resumed; give another"
    ):
        make_store().claim("s", worker="a", plan="new")


def test_of_two_workers_one_wins_until_its_lease_runs_out_and_then_the_first_is_fenced(
    make_store: MakeStore, seconds: Seconds
) -> None:
    one, other = make_store(), make_store()
    lease = one.claim("s", worker="a", plan="p")
    one.save(lease, entry())
    with pytest.raises(
        Held, match=r"^session 's' belongs to worker 'a' for 60 s more; wait, or let it release"
    ):
        other.claim("s", worker="b", plan="p")
    seconds.now += 61
    taken = other.claim("s", worker="b", plan="p")
    for late in (
        lambda: one.save(lease, entry(2)),
        lambda: one.note(lease, receipt()),
        lambda: one.prune(lease, 1),
    ):
        with pytest.raises(
            Fenced, match=r"^session 's' was taken from worker 'a': worker 'b' has it; stop this run, "
        ):
            late()
    one.release(lease)
    assert other.save(taken, entry(2)) == 2


def test_every_save_begins_the_lease_anew(make_store: MakeStore, seconds: Seconds) -> None:
    store = make_store()
    lease = store.claim("s", worker="a", plan="p")
    seconds.now += 50
    store.save(lease, entry())
    seconds.now += 50
    with pytest.raises(Held, match="belongs to worker 'a' for 10 s more"):
        store.claim("s", worker="b", plan="p")


def test_a_worker_that_was_started_again_fences_what_it_was(make_store: MakeStore) -> None:
    store = make_store()
    before = store.claim("s", worker="a", plan="p")
    now = make_store().claim("s", worker="a", plan="p")
    assert now.fence == before.fence + 1
    with pytest.raises(Fenced):
        store.save(before, entry())


def test_what_was_released_may_be_claimed_at_once(make_store: MakeStore) -> None:
    store = make_store()
    store.release(store.claim("s", worker="a", plan="p"))
    assert store.claim("s", worker="b", plan="p").worker == "b"


def test_the_next_session_is_the_one_that_waits_longest(make_store: MakeStore, seconds: Seconds) -> None:
    store = make_store()
    for session in ("late", "early", "done", "waits"):
        seconds.now += 1
        lease = store.claim(session, worker="a", plan="p")
        store.save(lease, entry(status={"done": "completed", "waits": "paused"}.get(session, "running")))
        if session != "early":
            store.release(lease)
    assert store.claim_next(worker="b") == Lease(session="late", fence=2, worker="b")
    assert store.claim_next(worker="b") is None
    seconds.now += 60
    assert [
        lease and lease.session for lease in (store.claim_next(worker="c"), store.claim_next(worker="c"))
    ] == [
        "early",
        "late",
    ]


def test_workers_that_ask_at_once_get_different_sessions(make_store: MakeStore) -> None:
    store = make_store()
    for number in range(6):
        store.release(store.claim(f"s{number}", worker="a", plan="p"))
    got: list[str] = []
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            mine = make_store()
            while (lease := mine.claim_next(worker=name)) is not None:
                got.append(lease.session)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(got) == [f"s{number}" for number in range(6)]


def test_with_another_key_nothing_is_read(make_store: MakeStore) -> None:
    store = make_store(key=b"k" * 16)
    store.save(store.claim("s", worker="a", plan="p"), entry())
    assert make_store(key=b"k" * 16).latest("s") is not None
    with pytest.raises(
        Damaged, match="its seal does not fit; it was damaged or edited, or saved with another key"
    ):
        make_store(key=b"K" * 16).latest("s")


@pytest.mark.parametrize(
    "name", ["", "a\nb", "x" * 201, "é" * 100], ids=["empty", "two lines", "long", "long in an address"]
)
def test_what_cannot_name_a_session_is_refused(make_store: MakeStore, name: str) -> None:
    with pytest.raises(BadInput, match="a session's name has printable characters, and at most 200 of them"):
        make_store().claim(name, worker="a", plan="p")


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
    with closing(SqlStore(database, clock=lambda: 0.0)) as store:
        lease = store.claim("s", worker="a", plan="p")
        database.full = True
        with pytest.raises(sqlite3.OperationalError, match="disk is full"):
            store.save(lease, entry(1))
        assert store.latest("s") is None
        assert store.save(lease, entry(2)) == 1


class Meanwhile(RealDisk):
    """A disk on which somebody else writes, each time when a session's checkpoints are asked for."""

    def __init__(self, root: Path, acts: list[Callable[[], None]]) -> None:
        super().__init__(root)
        self._acts = acts

    def names(self, folder: str) -> list[str]:
        if folder.endswith("/checkpoints") and self._acts:
            self._acts.pop(0)()
        return super().names(folder)


class MeanwhileAnchored(MemoryAnchor):
    """An anchor that is asked while somebody else saves."""

    def __init__(self, acts: list[Callable[[], None]]) -> None:
        super().__init__()
        self._acts = acts

    def read(self, session: str) -> tuple[int, str] | None:
        if self._acts:
            self._acts.pop(0)()
        return super().read(session)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_who_reads_while_a_worker_saves_and_prunes_sees_a_whole_session(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    acts: list[Callable[[], None]] = []
    if kind == "files":
        worker: CheckpointStore = FileStore(RealDisk(tmp_path), clock=float)
        reader: CheckpointStore = FileStore(Meanwhile(tmp_path, acts), clock=float)
    else:
        anchor = MeanwhileAnchored(acts)
        worker = SqlStore(Sqlite(tmp_path / "x.db"), clock=float, anchor=anchor)
        reader = SqlStore(Sqlite(tmp_path / "x.db"), clock=float, anchor=anchor)
        for store in (worker, reader):
            request.addfinalizer(store.close)
    lease = worker.claim("s", worker="a", plan="p")
    for number in range(1, 7):
        worker.save(lease, entry(number))

    def save_and_prune() -> None:
        worker.save(lease, entry(7))
        worker.save(lease, entry(8))
        worker.prune(lease, 1)

    acts += [save_and_prune, save_and_prune]
    kept = reader.latest("s")
    assert kept is not None
    assert (kept.checkpoint.number, acts) == (10, [])


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan"), float("inf")])
def test_a_lease_takes_seconds(tmp_path: Path, lease: float) -> None:
    with closing(Sqlite(":memory:")) as database:
        for make in (
            lambda: FileStore(RealDisk(tmp_path), clock=float, lease=lease),
            lambda: SqlStore(database, clock=float, lease=lease),
        ):
            with pytest.raises(BadInput, match=r"^a lease takes a number of seconds above 0, not "):
                make()


def test_a_process_that_is_frozen_in_a_write_does_not_hold_others_up_for_ever(tmp_path: Path) -> None:
    with RealDisk(tmp_path).locked("lock"):
        waits = RealDisk(tmp_path, wait=0.05).locked("lock")
        with (
            pytest.raises(
                Held, match=r"lock: another process has held this lock for 0\.05 s; it is frozen in"
            ),
            waits,
        ):
            pass


def test_a_worker_that_is_frozen_in_a_write_keeps_nobody_from_other_sessions(tmp_path: Path) -> None:
    seconds = Seconds()
    store = FileStore(RealDisk(tmp_path, wait=0.05), clock=seconds)
    for session in ("a", "b"):
        store.save(store.claim(session, worker="w", plan="p"), entry())
    seconds.now += 1000
    with SessionFiles(RealDisk(tmp_path), Sealer(None)).locked("a"):
        lease = store.claim_next(worker="v")
        assert lease is not None
        assert lease.session == "b"
        assert store.claim_next(worker="v") is None


def test_what_is_damaged_or_somebody_elses_in_a_folder_keeps_nobody_from_other_sessions(
    tmp_path: Path,
) -> None:
    store = FileStore(RealDisk(tmp_path), clock=(seconds := Seconds()))
    for session in ("a", "b"):
        store.save(store.claim(session, worker="w", plan="p"), entry())
    (tmp_path / "README.txt").write_text("These are sessions.")
    (tmp_path / "a" / "session.json").write_text('{"of": {"session": NaN}, "seal": ""}')
    seconds.now += 1000
    lease = store.claim_next(worker="v")
    assert lease is not None
    assert lease.session == "b"
    assert store.claim_next(worker="v") is None
    assert (store.sessions(), store.sessions("running")) == (["a", "b"], ["b"])
    with pytest.raises(
        Damaged, match=r"^session 'a': session\.json is not what was saved: its seal does not fit"
    ):
        store.latest("a")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_no_json_holds_is_damage(tmp_path: Path, number: str) -> None:
    store = FileStore(RealDisk(tmp_path), clock=float)
    store.save(store.claim("s", worker="w", plan="p"), entry())
    (file,) = (tmp_path / "s" / "checkpoints").glob("*.json")
    file.write_text(file.read_text().replace('"at": 1.5', f'"at": {number}'))
    with pytest.raises(Damaged, match=r"^session 's', checkpoint 1 is not what was saved"):
        store.latest("s")


def test_a_process_that_is_frozen_in_a_transaction_of_sqlite_is_told_as_that(tmp_path: Path) -> None:
    with closing(SqlStore(frozen := Sqlite(tmp_path / "s.db"), clock=float)) as store:
        lease = store.claim("s", worker="a", plan="p")
        hurried = SqlStore(Sqlite(tmp_path / "s.db", wait=0.05), clock=float)
        frozen.execute("BEGIN IMMEDIATE")
        why = r"/s\.db: another process has held this database for 0\.05 s \(database is locked\); it is frozen in the"
        with closing(hurried):
            with pytest.raises(Held, match=why):
                hurried.save(lease, entry())
            frozen.execute("ROLLBACK")
            assert hurried.save(lease, entry()) == 1


def test_a_wait_below_a_thousandth_of_a_second_is_no_wait_for_ever(empty_postgres: str) -> None:
    from statek_sim.agent.checkpoints.postgres import Postgres

    with closing(Postgres(empty_postgres, wait=0.0004)) as hurried:
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            assert hurried.execute(f"SHOW {setting}") == [("1ms",)]


def test_a_connection_that_is_frozen_in_a_transaction_keeps_nobody_out(empty_postgres: str) -> None:
    from statek_sim.agent.checkpoints.postgres import Postgres

    with closing(SqlStore(frozen := Postgres(empty_postgres, wait=0.6), clock=float)) as store:
        store.claim("s", worker="a", plan="p")
        frozen.execute("BEGIN")
        frozen.execute("SELECT id FROM sessions FOR UPDATE")
        why = r"^PostgreSQL database .*: another connection has held what this one needs for 0\.1 s; it is frozen"
        hurried = SqlStore(Postgres(empty_postgres, wait=0.1), clock=lambda: 100.0)
        with closing(hurried), pytest.raises(Held, match=why):
            hurried.claim("s", worker="b", plan="p")
        with closing(SqlStore(Postgres(empty_postgres, wait=10), clock=lambda: 100.0)) as patient:
            assert patient.claim("s", worker="b", plan="p").fence == 2


# -- databases that are not as they were left ---------------------------------------------------------------------


def saved_database(path: Path) -> Path:
    """Make a database with a session of three checkpoints and two receipts."""
    with closing(SqlStore(Sqlite(path), clock=float)) as store:
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

    def save(store: SqlStore) -> None:
        lease = store.claim("s", worker="b", plan="p")
        store.note(lease, receipt("1.3"))
        store.save(lease, entry(4))
        store.renew(lease)
        store.prune(lease, 1)
        store.release(lease)

    def take(store: SqlStore) -> None:
        if lease := store.claim_next(worker="c"):
            store.release(lease)

    acts: list[Callable[[SqlStore], object]] = [
        lambda store: store.latest("s"), lambda store: store.numbers("s"), lambda store: store.sessions(),
        lambda store: store.sessions("running"), take, save,
    ]  # fmt: skip
    for act in acts:
        try:
            with closing(SqlStore(Sqlite(path), clock=lambda: 1.0)) as store:
                act(store)
        except CheckpointError as error:
            raised.append(str(error))
    return raised


TABLES = "its tables are not as this package makes them: "


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (["DELETE FROM schema_versions"], f"{TABLES}table sessions already exists"),
        (["DELETE FROM schema_versions WHERE version = 2"], f"{TABLES}duplicate column name: fence"),
        (["DROP TABLE schema_versions"], f"{TABLES}table sessions already exists"),
        (
            ["DROP TABLE schema_versions", "CREATE TABLE schema_versions (x)"],
            f"{TABLES}no such column: version",
        ),
        (["INSERT INTO schema_versions (version) VALUES (99)"], "the tables have version 99, and this"),
        (["DROP TABLE receipts"], f"{TABLES}no such table: "),
        (["ALTER TABLE checkpoints RENAME COLUMN seal TO stamp"], f"{TABLES}no such column: seal"),
    ],
    ids=[
        "no row",
        "no newest row",
        "no table",
        "another's table",
        "from the future",
        "no receipts",
        "column",
    ],
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
        "torn.db": (good[: len(good) // 2 + 100], Damaged, "it is no SQLite database, or it is damaged: "),
        "zeros.db": (good[:4096] + bytes(len(good) - 4096), Damaged, "it is damaged: "),
    }
    for name, (content, kind, what) in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(kind, match=what) as fault:
            SqlStore(Sqlite(path), clock=float).latest("s")
        assert str(fault.value).startswith(f"{path}: "), name
    other = tmp_path / "other.db"
    change(other, "CREATE TABLE sessions (id INTEGER PRIMARY KEY, user TEXT)")
    assert all(error.startswith(f"{other}: {TABLES}table sessions already") for error in used(other))
    for path, what in (
        (tmp_path, "unable to open database file"),
        (tmp_path / "none" / "x.db", "unable to open"),
    ):
        with pytest.raises(
            CheckpointError, match=f"^{re.escape(str(path))}: {what}.*; name a file that can be"
        ):
            Sqlite(path)
    closed = SqlStore(Sqlite(tmp_path / "good.db"), clock=float)
    closed.close()
    with pytest.raises(CheckpointError, match=r"good\.db: Cannot operate on a closed database"):
        closed.latest("s")


def test_whatever_stands_in_a_column_is_told_and_never_a_traceback(tmp_path: Path) -> None:
    """A value of another kind in each column of each table, which SQLite takes for most of them."""
    good = saved_database(tmp_path / "good.db")
    with closing(sqlite3.connect(good)) as raw:
        tables = ("schema_versions", "sessions", "checkpoints", "receipts")
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
    SqlStore(Sqlite(path), clock=float).close()
    content = path.read_bytes()
    assert b"CREATE TABLE" in content
    path.write_bytes(content.replace(b"CREATE TABLE ", b"CREATE TABLE" + byte))
    with pytest.raises(CheckpointError, match=r"runs\.db"):
        SqlStore(Sqlite(path), clock=float)
