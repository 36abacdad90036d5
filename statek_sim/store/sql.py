"""Stores runs in database tables, in SQLite or PostgreSQL, and migrates the tables.

Every change to a run is one transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from statek_sim.errors import BadStore, Damaged
from statek_sim.store.database import Database, Row, transaction
from statek_sim.store.protocol import (
    LEASE,
    Changes,
    Kind,
    Lease,
    LeaseTerms,
    Listed,
    Stored,
    nobody_is_gone,
)
from statek_sim.values import JSON

_HOLDING: Final = "SELECT fence, revision, worker, lease_until, kind FROM statek_runs WHERE id = ?"


class SqlStore:
    """A `Store` in a database. The tables are created or migrated; closing the store closes the database.

    With `read_only`, the tables must exist, and only `load` and `runs` may be called. The other arguments are
    passed to `LeaseTerms`. Threads may share a store: one transaction runs at a time.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], float],
        lease: float = LEASE,
        is_gone: Callable[[str], bool] = nobody_is_gone,
        read_only: bool = False,
    ) -> None:
        self.address = database.address
        self.lease_seconds = lease
        self._database = database
        self._alone = threading.RLock()
        try:
            self._terms = LeaseTerms(address=self.address, clock=clock, seconds=lease, is_gone=is_gone)
            (recognise if read_only else migrate)(database)
        except Exception:
            database.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    @contextmanager
    def _transaction(self, begin: str = "begin") -> Iterator[Database]:
        """Run the block as one transaction; raises `Damaged` for a value of the wrong type, which SQLite allows."""
        with self._alone, transaction(self._database, begin) as database:
            try:
                yield database
            except (TypeError, ValueError) as error:
                raise Damaged(
                    f"{self.address}: a column has a value of the wrong type: {error}; restore the store from a backup"
                ) from error

    def _unknown(self, run: str, kind: Kind) -> BadStore:
        rows = self._database.execute("SELECT id FROM statek_runs WHERE kind = ? ORDER BY id", (kind,))
        return self._terms.unknown(run, [name for (name,) in rows])

    # -- leases ------------------------------------------------------------------------------------------------

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Claim a run, creating it if `about` is given; raises `Held` and `BadStore`."""
        if about is not None:
            self._terms.check_name(run)
        with self._transaction() as database:
            if about is not None:
                database.execute(
                    "INSERT INTO statek_runs (id, kind, about) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
                    (run, kind, json.dumps(about)),
                )
            rows = database.execute(f"{_HOLDING} {database.dialect['for_update']}", (run,))
            if not rows:
                raise self._unknown(run, kind)
            fence, revision, holding, until, stored_kind = rows[0]
            self._terms.check_kind(run, stored_kind, kind)
            self._terms.check_free(run, holding, until, worker=worker)
            return self._take(run, worker, fence=fence, revision=revision)

    def claim_next(self, *, worker: str, kind: Kind = "jobs", besides: Collection[str] = ()) -> Lease | None:
        """Claim the unfinished run of this kind that has waited longest for a worker, or return None.

        `worker` is the claiming worker's name, and `besides` are the names of runs to skip.

        Rows are locked one at a time, because a worker that locked all rows would block the other workers.
        """
        with self._transaction() as database:
            rows = database.execute(
                "SELECT id FROM statek_runs WHERE kind = ? AND status = 'running' ORDER BY lease_until, id",
                (kind,),
            )
            for (run,) in rows:
                locked = () if run in besides else self._locked(str(run))
                for fence, revision, holder, until, _ in locked:
                    if not self._terms.left(holder, until):
                        return self._take(str(run), worker, fence=fence, revision=revision)
            return None

    def _locked(self, run: str) -> list[Row]:
        """Lock a running run and return the row with its holder; return no row if another worker has locked it."""
        skip_locked = self._database.dialect["skip_locked"]
        return self._database.execute(f"{_HOLDING} AND status = 'running' {skip_locked}", (run,))

    def _take(self, run: str, worker: str, *, fence: int, revision: int) -> Lease:
        self._database.execute(
            "UPDATE statek_runs SET fence = ?, worker = ?, lease_until = ? WHERE id = ?",
            (fence + 1, worker, self._terms.until(), run),
        )
        return Lease(run=run, worker=worker, fence=fence + 1, revision=revision)

    def renew(self, lease: Lease) -> None:
        """Extend a lease to its full time from now, in any thread; raises `Fenced` if the run was taken over."""
        with self._transaction() as database:
            found = database.execute(
                "UPDATE statek_runs SET lease_until = ? WHERE id = ? AND fence = ? RETURNING id",
                (self._terms.until(), lease.run, lease.fence),
            )
        if not found:
            raise self._terms.fenced(lease)

    def release(self, lease: Lease) -> None:
        """Release a run; does nothing if another worker has taken it over."""
        with self._transaction() as database:
            database.execute(
                "UPDATE statek_runs SET worker = '', lease_until = ? WHERE id = ? AND fence = ?",
                (self._terms.clock(), lease.run, lease.fence),
            )

    # -- content -----------------------------------------------------------------------------------------------

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Save changes durably and return the lease with their revision; raises `Fenced` if the run was taken over."""
        with self._transaction() as database:
            revision = lease.revision + 1
            found = database.execute(
                "UPDATE statek_runs SET revision = ?, status = ?, events = events + ?, lease_until = ? "
                "WHERE id = ? AND fence = ? AND revision = ? RETURNING events",
                (
                    revision,
                    changes.status,
                    len(changes.events),
                    self._terms.until(),
                    lease.run,
                    lease.fence,
                    lease.revision,
                ),
            )
            if not found:
                raise self._terms.fenced(lease)
            for name, content in changes.rows.items():
                database.execute(
                    "INSERT INTO statek_rows (run, name, revision, content) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (run, name) DO UPDATE SET revision = excluded.revision, content = excluded.content",
                    (lease.run, name, revision, content),
                )
            for name in changes.gone:
                database.execute("DELETE FROM statek_rows WHERE run = ? AND name = ?", (lease.run, name))
            first = found[0][0] - len(changes.events) + 1
            for number, event in enumerate(changes.events, first):
                database.execute(
                    "INSERT INTO statek_events (run, number, content) VALUES (?, ?, ?)",
                    (lease.run, number, event),
                )
        return replace(lease, revision=revision)

    def load(self, run: str) -> Stored:
        """Return a run as of its newest commit; raises `NoSuchRun` and `Damaged`."""
        with self._transaction("begin_read") as database:
            heads = database.execute(
                "SELECT about, status, revision, events FROM statek_runs WHERE id = ?", (run,)
            )
            if not heads:
                raise self._unknown(run, "jobs")
            rows = database.execute("SELECT name, content FROM statek_rows WHERE run = ?", (run,))
            events = database.execute(
                "SELECT number, content FROM statek_events WHERE run = ? ORDER BY number", (run,)
            )
            ((about, status, revision, count),) = heads
            if [number for number, _ in events] != [*range(1, count + 1)]:
                raise Damaged(
                    f"{self.address}: run {run!r}: {count} events were committed, but {len(events)} are stored; "
                    "restore the store from a backup"
                )
            return Stored(
                run=run,
                about=json.loads(about),
                status=status,
                revision=revision,
                rows={_string(name): _string(content) for name, content in rows},
                events=[_string(content) for _, content in events],
            )

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return all runs of a kind, sorted by name; raises `Damaged` if a row has a value of the wrong type."""
        with self._transaction("begin_read") as database:
            rows = database.execute(
                "SELECT id, status, revision, worker, lease_until FROM statek_runs WHERE kind = ? ORDER BY id",
                (kind,),
            )
            return [self._listed(*row) for row in rows]

    def _listed(self, run: str, status: str, revision: int, worker: str, until: float) -> Listed:
        left = self._terms.left(worker, until)
        return Listed(run=run, status=status, revision=revision, worker=worker if left else "", left=left)


FORMAT: Final = "statek-sim/store"
"""The format name in the store's own table."""

_RUNS: Final = """
CREATE TABLE statek_runs (
    id TEXT PRIMARY KEY CHECK (length(id) > 0),
    kind TEXT NOT NULL CHECK (kind IN ('jobs', 'session')),
    about TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'ended', 'paused', 'completed', 'failed')),
    revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    events INTEGER NOT NULL DEFAULT 0 CHECK (events >= 0),
    fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    worker TEXT NOT NULL DEFAULT '',
    lease_until DOUBLE PRECISION NOT NULL DEFAULT 0
)"""

_ROWS: Final = """
CREATE TABLE statek_rows (
    run TEXT NOT NULL REFERENCES statek_runs(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run, name)
)"""

_EVENTS: Final = """
CREATE TABLE statek_events (
    run TEXT NOT NULL REFERENCES statek_runs(id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number > 0),
    content TEXT NOT NULL,
    PRIMARY KEY (run, number)
)"""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (_RUNS, _ROWS, _EVENTS, "CREATE INDEX statek_runs_free ON statek_runs (kind, status, lease_until, id)"),
)
"""The statements for each migration from one version to the next."""


def recognise(database: Database) -> None:
    """Check that a database is a store, without changing it. Raises `BadStore` if it is not a store, or is too new."""
    try:
        rows = database.execute("SELECT format, version FROM statek_store")
    except BadStore as error:
        if "statek_store" not in str(error):
            raise
        rows = []
    if not rows:
        raise BadStore(f"{database.address}: not a store: table statek_store is empty; use another store")
    _version(rows, database.address)


def migrate(database: Database) -> None:
    """Migrate the tables to the newest version.

    Raises `BadStore` for tables from a newer package or another program.
    """
    with transaction(database):
        database.execute(database.dialect["lock"])
        database.execute(
            "CREATE TABLE IF NOT EXISTS statek_store (format TEXT NOT NULL, version INTEGER NOT NULL)"
        )
        version = _version(database.execute("SELECT format, version FROM statek_store"), database.address)
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                database.execute(statement)
        if version < len(MIGRATIONS):
            database.execute("DELETE FROM statek_store")
            database.execute(
                "INSERT INTO statek_store (format, version) VALUES (?, ?)", (FORMAT, len(MIGRATIONS))
            )


def _string(value: object) -> str:
    """Return a value from a string column; raises TypeError for any other type, which SQLite allows."""
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r}")
    return value


def _version(rows: list[Row], address: str) -> int:
    if not rows:
        return 0
    name, version = rows[0]
    if len(rows) != 1 or name != FORMAT or not isinstance(version, int) or version < 1:
        raise Damaged(
            f"{address}: table statek_store contains {rows!r}; expected {FORMAT!r} and a version; use another store"
        )
    if version > len(MIGRATIONS):
        raise BadStore(
            f"{address}: tables have version {version}, but this package reads up to {len(MIGRATIONS)}; update the "
            "package"
        )
    return version
