"""A database as the SQL store uses it: one connection, statements with `?`, transactions as statements."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.errors import CheckpointError, Damaged, Held

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection. Outside `BEGIN` every statement is a transaction of its own.

    What its driver raises is told as a `CheckpointError` that names the database: `Damaged` where what is in it is not
    what a store puts there, `Held` where another process keeps it.
    """

    @property
    def place(self) -> str:
        """Where it is, as people may see it."""

    @property
    def words(self) -> Mapping[str, str]:
        """What this database calls what the statements name in braces."""

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""


@contextmanager
def transaction(database: Database, begin: str = "begin") -> Iterator[Database]:
    """Do statements together, or none of them; `begin` is the word that they begin with."""
    database.execute(database.words[begin])
    try:
        yield database
        # It may fail as well: the disk is full only now.
        database.execute("COMMIT")
    except BaseException:
        with suppress(Exception):
            database.execute("ROLLBACK")
        raise


class Shared:
    """One connection that several threads use, a transaction at a time; `opened` brings its tables up to date first."""

    def __init__(self, database: Database, opened: Callable[[Database], object]) -> None:
        self._database = database
        self.alone = threading.RLock()
        try:
            opened(database)
        except Exception:
            database.close()
            raise

    @contextmanager
    def transaction(self, begin: str = "begin") -> Iterator[Database]:
        """Do statements together, or none of them, alone."""
        with self.alone, transaction(self._database, begin) as database:
            yield database

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


SQLITE_WORDS: Final = {
    "json": "TEXT",
    "id": "TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(16))))",
    "time": "TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "now": "CURRENT_TIMESTAMP",
    "is_object": "json_type({column}) = 'object'",
    "begin": "BEGIN IMMEDIATE",
    "begin_read": "BEGIN",
    "for_update": "",
    "skip_locked": "",
}


_NO_DATABASE: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_OTHER_TABLES: Final = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
)
"""What SQLite says of a statement that fits no table, and of rows that a table does not take."""


class Sqlite:
    """A file of SQLite's, or `:memory:`: a commit that has returned survives a loss of power.

    `wait` are the seconds that a statement waits for another process, then it is `Held`. The journal is a write-ahead
    log. With `read_only` nothing of a file is changed, nor is one made. A file that cannot be used, is no database or
    is damaged is a `CheckpointError` with its name.
    """

    words = SQLITE_WORDS

    def __init__(self, path: Path | str, *, wait: float = 30.0, read_only: bool = False) -> None:
        self.place = str(path)
        self._wait = wait
        address = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
        try:
            self._connection = sqlite3.connect(
                address, timeout=wait, isolation_level=None, check_same_thread=False, uri=read_only
            )
        except sqlite3.Error as error:
            raise self._told(error) from error
        try:
            for pragma in (
                () if read_only else ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
            ):
                self.execute(f"PRAGMA {pragma}")
        except CheckpointError:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._told(error) from error
        except UnicodeDecodeError as error:
            # Of the schema, which Python reads to say what is wrong with a statement.
            raise self._told(sqlite3.OperationalError(str(error))) from error

    def _told(self, error: sqlite3.Error) -> CheckpointError:
        """Return what an error of SQLite's means, with the file and what to do."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            # What is no text where one was saved has no code.
            code = sqlite3.SQLITE_CORRUPT if isinstance(error, sqlite3.OperationalError) else 0
        code &= 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return Held(
                f"{self.place}: another process has held this database for {self._wait:g} s ({error}); it is frozen in "
                "the middle of a transaction: let it go on, or end it"
            )
        if code in _NO_DATABASE:
            return Damaged(
                f"{self.place}: it is no SQLite database, or it is damaged: {error}; name another file, or put a copy "
                "back"
            )
        if code in _OTHER_TABLES:
            return Damaged(
                f"{self.place}: its tables are not as this package makes them: {error}; they are another program's, or "
                "somebody changed them: name another file, or put a copy back"
            )
        return CheckpointError(
            f"{self.place}: {error}; name a file that can be read and written, on a disk with room"
        )

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
