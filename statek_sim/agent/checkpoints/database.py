"""A database as the SQL store uses it: one connection, statements with `?`, transactions as statements."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from statek_sim.errors import Held

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection. Outside `BEGIN` every statement is a transaction of its own."""

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


class Sqlite:
    """A file of SQLite's, or `:memory:`: a commit that has returned survives a loss of power.

    `wait` are the seconds that a statement waits for another process, then it is `Held`. The journal is a write-ahead
    log. With `read_only` nothing of a file is changed, nor is one made.
    """

    words = SQLITE_WORDS

    def __init__(self, path: Path | str, *, wait: float = 30.0, read_only: bool = False) -> None:
        place = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
        self._wait = wait
        self._connection = sqlite3.connect(
            place, timeout=wait, isolation_level=None, check_same_thread=False, uri=read_only
        )
        try:
            for pragma in (
                () if read_only else ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
            ):
                self.execute(f"PRAGMA {pragma}")
        except (sqlite3.Error, Held):
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            raise Held(
                f"another process has held this database for {self._wait:g} s ({error}); it is frozen in the middle of "
                "a transaction: let it go on, or end it"
            ) from error

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
