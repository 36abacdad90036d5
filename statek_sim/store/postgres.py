"""PostgreSQL for `SqlStore`, using psycopg 3 (the `sql` extra), which only this module imports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import psycopg

from statek_sim.errors import BadStore, Damaged, Held
from statek_sim.store.database import Row

POSTGRES: Final = {
    "begin": "BEGIN",
    "begin_read": "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "for_update": "FOR UPDATE",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
    "lock": "SELECT pg_advisory_xact_lock(7004002)",
}


_OTHER_TABLES: Final = (psycopg.ProgrammingError, psycopg.IntegrityError, psycopg.DataError)


class Postgres:
    """One PostgreSQL connection; `conninfo` is a libpq address, and `address` is its name in errors.

    A statement waits `wait` seconds for another connection before it raises `Held`. The server closes a
    connection that is idle in a transaction for `wait` seconds, so that a frozen worker does not block
    others.
    """

    dialect = POSTGRES

    def __init__(self, conninfo: str, *, address: str, wait: float = 30.0) -> None:
        self.address = address
        self._wait = wait
        try:
            self._connection = psycopg.connect(conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self._translated(error) from error
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            # 0 would mean no limit.
            limit = f"{max(1, math.ceil(1000 * wait))}ms"
            self._set(setting, limit)

    def _set(self, setting: str, limit: str) -> None:
        try:
            self.execute("SELECT set_config(?, ?, false)", (setting, limit))
        except BadStore:
            self.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement, with `?` for each value, and return the resulting rows."""
        try:
            cursor = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values) or None)
            return [] if cursor.description is None else cursor.fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: psycopg.Error) -> BadStore:
        """Convert a PostgreSQL error to one that names the database and gives advice."""
        words = str(error).strip()
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return Held(
                f"{self.address}: another connection has held a lock for {self._wait:g} s; it is stuck "
                "in a transaction: resume it or end it"
            )
        if isinstance(error, _OTHER_TABLES):
            return Damaged(
                f"{self.address}: the tables do not have this package's schema: {words}; another program "
                "created or changed them: use another database, or restore a backup"
            )
        return BadStore(f"{self.address}: {words}; check the address and the server")

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
