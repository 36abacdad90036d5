"""A database as `SqlStore` uses it: one connection, statements with `?`, transactions as statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.errors import BadStore, Damaged, Held

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection. Outside `BEGIN` every statement is a transaction of its own.

    Errors of its driver are raised as `BadStore` with the database's address: `Damaged` where its content is not what
    a store puts there, `Held` where another process keeps a lock.
    """

    @property
    def address(self) -> str:
        """What errors call it, without a password."""

    @property
    def dialect(self) -> Mapping[str, str]:
        """SQL that differs from database to database: `begin`, `begin_read`, `for_update`, `skip_locked`, `lock`."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""


@contextmanager
def transaction(database: Database, begin: str = "begin") -> Iterator[Database]:
    """Do statements together, or none of them; `begin` is an entry of the dialect."""
    database.execute(database.dialect[begin])
    try:
        yield database
        # It may fail as well: the disk is full only now.
        database.execute("COMMIT")
    except BaseException:
        with suppress(Exception):
            database.execute("ROLLBACK")
        raise


SQLITE: Final = {
    "begin": "BEGIN IMMEDIATE",
    "begin_read": "BEGIN",
    "for_update": "",
    "skip_locked": "",
    "lock": "SELECT 1",
}


_NO_DATABASE: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_OTHER_TABLES: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
)
"""What SQLite says of a statement that fits no table, and of rows that a table does not take."""


class Sqlite:
    """A file of SQLite's, or `:memory:`: a commit that has returned survives a loss of power.

    `wait` are the seconds that a statement waits for another process, then it raises `Held`. The journal is a
    write-ahead log. With `read_only` the file must be there, and is not changed. `address` is what errors call it.
    """

    dialect = SQLITE

    def __init__(
        self, path: Path | str, *, address: str | None = None, wait: float = 30.0, read_only: bool = False
    ) -> None:
        self.address = str(path) if address is None else address
        self._wait = wait
        name = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
        try:
            self._connection = sqlite3.connect(
                name, timeout=wait, isolation_level=None, check_same_thread=False, uri=read_only
            )
        except sqlite3.Error as error:
            raise self._translated(error) from error
        try:
            for pragma in (
                () if read_only else ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
            ):
                self.execute(f"PRAGMA {pragma}")
        except BadStore:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        except UnicodeDecodeError as error:
            # Of the schema, which Python reads to say what is wrong with a statement.
            raise self._translated(sqlite3.OperationalError(str(error))) from error

    def _translated(self, error: sqlite3.Error) -> BadStore:
        """Return what an error of SQLite's means, with the file and what to do."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            # What is no text where one was saved has no code.
            code = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.OperationalError) else 0
        code &= 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return Held(
                f"{self.address}: another process has held this database for {self._wait:g} s ({error}); it is frozen "
                "in the middle of a transaction: let it go on, or end it"
            )
        if code in _NO_DATABASE:
            return Damaged(
                f"{self.address}: it is no SQLite database, or it is damaged: {error}; name another file, or put a "
                "copy back"
            )
        if code in _OTHER_TABLES:
            return Damaged(
                f"{self.address}: its tables are not as this package makes them: {error}; they are another program's, "
                "or somebody changed them: name another file, or put a copy back"
            )
        return BadStore(
            f"{self.address}: {error}; name a file that can be read and written, on a disk with room"
        )

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
