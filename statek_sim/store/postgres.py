"""PostgreSQL for `SqlStore`, through psycopg 3 (extra `sql`), which is imported here only."""

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
    """One connection to PostgreSQL; `conninfo` is an address of libpq's, `address` is what errors call it.

    A statement waits `wait` seconds for another connection, then it is `Held`; and a connection that does nothing for
    so long inside a transaction is ended by the server: a worker that is frozen there, not dead, keeps nobody out.
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
            # 0 would be no limit at all.
            limit = f"{max(1, math.ceil(1000 * wait))}ms"
            self._set(setting, limit)

    def _set(self, setting: str, limit: str) -> None:
        try:
            self.execute("SELECT set_config(?, ?, false)", (setting, limit))
        except BadStore:
            self.close()
            raise

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            cursor = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values) or None)
            return [] if cursor.description is None else cursor.fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: psycopg.Error) -> BadStore:
        """Return what an error of PostgreSQL's means, with the database and what to do."""
        words = str(error).strip()
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return Held(
                f"{self.address}: another connection has held what this one needs for {self._wait:g} s; it is frozen "
                "in the middle of a transaction: let it go on, or end it"
            )
        if isinstance(error, _OTHER_TABLES):
            return Damaged(
                f"{self.address}: its tables are not as this package makes them: {words}; they are another program's, "
                "or somebody changed them: name another database, or put a copy back"
            )
        return BadStore(f"{self.address}: {words}; check the address and the server")

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
