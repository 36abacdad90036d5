"""A database whose process is killed at a statement."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.store.database import Database, Row
from tests.store.simulated_disk import Killed


class DyingDatabase:
    """A database whose process is killed before its statement `dies_at`, counted from 0, or never if None."""

    def __init__(self, database: Database, *, dies_at: int | None = None) -> None:
        self._database = database
        self._dies_at = dies_at
        self.address = database.address
        self.dialect = database.dialect
        self.statements = 0

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement, unless the process dies."""
        if self._dies_at is not None and self.statements >= self._dies_at:
            self._database.close()
            raise Killed
        self.statements += 1
        return self._database.execute(statement, values)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._database.close()
