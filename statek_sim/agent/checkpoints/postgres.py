"""PostgreSQL for the SQL store, through psycopg 3 (extra `sql`), which is imported here and when it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import psycopg

from statek_sim.agent.checkpoints.database import Row
from statek_sim.errors import Held

POSTGRES_WORDS: Final = {
    "json": "JSONB",
    "id": "UUID PRIMARY KEY DEFAULT gen_random_uuid()",
    "time": "TIMESTAMPTZ NOT NULL DEFAULT now()",
    "now": "now()",
    "is_object": "jsonb_typeof({column}) = 'object'",
    "begin": "BEGIN",
    "begin_read": "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "for_update": "FOR UPDATE",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
}


class Postgres:
    """One connection to PostgreSQL; `conninfo` is a connection string or an address of psycopg's.

    A statement waits `wait` seconds for another connection, then it is `Held`; and a connection that does nothing for
    so long inside a transaction is ended by the server: a worker that is frozen there, not dead, keeps nobody out.
    """

    words = POSTGRES_WORDS

    def __init__(self, conninfo: str, *, wait: float = 30.0) -> None:
        self._wait = wait
        self._connection = psycopg.connect(conninfo, autocommit=True)
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            # 0 would be no limit at all.
            limit = f"{max(1, math.ceil(1000 * wait))}ms"
            self._connection.execute("SELECT set_config(%s, %s, false)", (setting, limit))

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            cursor = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values) or None)
        except psycopg.errors.LockNotAvailable:
            raise Held(
                f"another connection has held what this one needs for {self._wait:g} s; it is frozen in the middle of "
                "a transaction: let it go on, or end it"
            ) from None
        return [] if cursor.description is None else cursor.fetchall()

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
