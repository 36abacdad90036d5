"""The interface between `SqlStore` and a database, and its implementation for SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.errors import BadStore, Damaged, Held

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection to a database. Outside `BEGIN` and `COMMIT`, every statement is its own transaction.

    Driver errors are raised as `BadStore` with the database's address: `Damaged` for invalid content, `Held`
    if another process holds a lock.
    """

    @property
    def address(self) -> str:
        """The database's name in errors, without a password."""

    @property
    def dialect(self) -> Mapping[str, str]:
        """SQL fragments that differ between databases: `begin`, `begin_read`, `for_update`, `skip_locked`, `lock`."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement, with `?` for each value, and return the resulting rows."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""


@contextmanager
def transaction(database: Database, begin: str = "begin") -> Iterator[Database]:
    """Execute the block's statements atomically; `begin` is a key in `dialect`."""
    database.execute(database.dialect[begin])
    try:
        yield database
        # The rollback may fail too, for example because the disk is still full.
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
"""SQLite's error codes for tables that do not have this package's schema."""


class Sqlite:
    """An SQLite file, or `:memory:`; returned commits survive a power loss.

    A statement waits at most `wait` seconds for another process, then raises `Held`. The journal is a
    write-ahead log. With `read_only`, the file must exist and is not modified. `address` is the file's name
    in errors.
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
        """Run one statement, with `?` for each value, and return the resulting rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        except UnicodeDecodeError as error:
            # A damaged schema may not be UTF-8, and SQLite quotes it in error messages.
            raise self._translated(sqlite3.OperationalError(str(error))) from error

    def _translated(self, error: sqlite3.Error) -> BadStore:
        """Convert an SQLite error to one that names the file and gives advice."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            # Invalid text in a text column has no error code.
            code = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.OperationalError) else 0
        code &= 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return Held(
                f"{self.address}: another process has held this database for {self._wait:g} s ({error}); "
                "it is stuck in a transaction: resume it or end it"
            )
        if code in _NO_DATABASE:
            return Damaged(
                f"{self.address}: not a SQLite database, or damaged: {error}; use another file, or restore a backup"
            )
        if code in _OTHER_TABLES:
            return Damaged(
                f"{self.address}: the tables do not have this package's schema: {error}; another program "
                "created or changed them: use another file, or restore a backup"
            )
        return BadStore(
            f"{self.address}: {error}; use a readable and writable file, on a disk with free space"
        )

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
