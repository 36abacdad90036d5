"""PostgreSQL for the SQL store, through psycopg 3 (extra `sql`), which is imported here and when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg

from statek_sim.agent.checkpoints.database import Row

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
    """One connection to PostgreSQL; `conninfo` is a connection string or an address of psycopg's."""

    words = POSTGRES_WORDS

    def __init__(self, conninfo: str) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True)

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        asked = self._connection.execute(statement.replace("?", "%s").encode(), tuple(values) or None)
        return [] if asked.description is None else asked.fetchall()

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._connection.close()
