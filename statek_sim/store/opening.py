"""Opening a store by its address: `sqlite:PATH`, or `postgresql://...` as psycopg reads it."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from statek_sim.agent.checkpoints.database import Database, Row, Sqlite
from statek_sim.errors import BadStore, DamagedStore, Held
from statek_sim.store.sql import SqlRuns
from statek_sim.store.store import LEASE
from statek_sim.store.worker import is_gone

_SQLITE: Final = "sqlite:"
_POSTGRES: Final = ("postgresql://", "postgres://")
_BUSY: Final = ("locked", "busy")
_ADDRESSES: Final = "expected 'sqlite:PATH' or 'postgresql://USER@HOST/DATABASE'"


class _Telling:
    """A database whose own errors are told with its address, and with what to do."""

    def __init__(
        self,
        database: Database,
        errors: tuple[type[Exception], ...],
        tell: Callable[[Exception], BadStore],
    ) -> None:
        self._database = database
        self._errors = errors
        self._tell = tell

    @property
    def words(self) -> Mapping[str, str]:
        """What this database calls what the statements name in braces."""
        return self._database.words

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows; raises `BadStore`."""
        try:
            return self._database.execute(statement, values)
        except self._errors as error:
            raise self._tell(error) from error

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


def open_store(
    address: str,
    *,
    clock: Callable[[], float],
    lease: float = LEASE,
    must_exist: bool = False,
    read_only: bool = False,
) -> SqlRuns:
    """Open a store of runs; `BadStore` for an address that is none, and for what is no store of ours.

    `clock` returns seconds that all workers share. The store is made unless it `must_exist`; one that is `read_only`
    must, and nothing in it is changed.
    """
    if must_exist and not read_only:
        # Before the tables are brought up to date: what is somebody else's stays as it is.
        open_store(address, clock=clock, read_only=True).close()
    if address.startswith(_SQLITE):
        database: Database = _sqlite(address, read_only=read_only)
    elif address.startswith(_POSTGRES):
        database = _postgres(address)
    else:
        raise BadStore(f"--store {address!r}: {_ADDRESSES}")
    return SqlRuns(
        database, address=shown(address), clock=clock, lease=lease, is_gone=is_gone, read_only=read_only
    )


def shown(address: str) -> str:
    """Return an address as people may see it: without a password."""
    scheme, mark, rest = address.partition("://")
    user, at, place = rest.rpartition("@")
    return address if not (mark and at) else f"{scheme}://{user.partition(':')[0]}@{place}"


def _sqlite(address: str, *, read_only: bool) -> Database:
    path = Path(address.removeprefix(_SQLITE))
    if not path.name:
        raise BadStore(f"--store {address!r}: {_ADDRESSES}")
    if read_only and not path.is_file():
        raise BadStore(f"{address}: there is no such file; `statek-sim run --store {address}` makes one")
    if not path.parent.is_dir():
        raise BadStore(f"{address}: folder {path.parent} does not exist; make it first")

    def tell(error: Exception) -> BadStore:
        if isinstance(error, Held) or any(word in str(error) for word in _BUSY):
            return BadStore(f"{address}: another process writes to it all the time: {error}; try again")
        if isinstance(error, sqlite3.OperationalError) and "disk I/O" not in str(error):
            return BadStore(f"{address}: {error}; name another file, or make this one readable and writable")
        return DamagedStore(
            f"{address}: it is no SQLite database, or it is damaged: {error}; name another file, or put a copy back"
        )

    try:
        database = Sqlite(path, read_only=read_only)
    except (sqlite3.Error, Held) as error:
        raise tell(error) from error
    return _Telling(database, (sqlite3.Error, Held), tell)


def _postgres(address: str) -> Database:
    try:
        driver: Any = importlib.import_module("psycopg")
        from statek_sim.agent.checkpoints.postgres import Postgres  # noqa: PLC0415  # an extra, when it is asked for
    except ImportError as error:
        raise BadStore(
            f"{shown(address)}: PostgreSQL needs psycopg ({error}): install pytest-statek[sql]"
        ) from None

    def tell(error: Exception) -> BadStore:
        return BadStore(f"{shown(address)}: {str(error).strip()}; check the address and the server")

    try:
        return _Telling(Postgres(address), (driver.Error, Held), tell)
    except driver.Error as error:
        raise tell(error) from None
