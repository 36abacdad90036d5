"""Opening a store by its address: `sqlite:PATH`, or `postgresql://...` as psycopg reads it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from statek_sim.agent.checkpoints.database import Database, Row, Sqlite
from statek_sim.errors import BadStore, CheckpointError, DamagedStore, Held
from statek_sim.store.sql import SqlRuns
from statek_sim.store.store import LEASE
from statek_sim.store.worker import is_gone

_SQLITE: Final = "sqlite:"
_POSTGRES: Final = ("postgresql://", "postgres://")
_PASSWORD: Final = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)
"""A parameter of an address, as libpq takes them."""
_BUSY: Final = ("locked", "busy")
_ADDRESSES: Final = "expected 'sqlite:PATH' or 'postgresql://USER@HOST/DATABASE'"


class _Telling:
    """A database whose own errors are told with its address, and with what to do."""

    def __init__(
        self,
        database: Database,
        tell: Callable[[CheckpointError], BadStore],
    ) -> None:
        self._database = database
        self._tell = tell

    @property
    def place(self) -> str:
        """Where it is, as people may see it."""
        return self._database.place

    @property
    def words(self) -> Mapping[str, str]:
        """What this database calls what the statements name in braces."""
        return self._database.words

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows; raises `BadStore`."""
        try:
            return self._database.execute(statement, values)
        except CheckpointError as error:
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
    without = address if not (mark and at) else f"{scheme}://{user.partition(':')[0]}@{place}"
    return _PASSWORD.sub(r"\1***", without) if mark else without


def _sqlite(address: str, *, read_only: bool) -> Database:
    path = Path(address.removeprefix(_SQLITE))
    if not path.name:
        raise BadStore(f"--store {address!r}: {_ADDRESSES}")
    if read_only and not path.is_file():
        raise BadStore(f"{address}: there is no such file; `statek-sim run --store {address}` makes one")
    if not path.parent.is_dir():
        raise BadStore(f"{address}: folder {path.parent} does not exist; make it first")

    def tell(error: CheckpointError) -> BadStore:
        cause = error.__cause__
        if isinstance(error, Held) or any(word in str(cause) for word in _BUSY):
            return BadStore(f"{address}: another process writes to it all the time: {cause}; try again")
        if isinstance(cause, sqlite3.OperationalError) and "disk I/O" not in str(cause):
            return BadStore(f"{address}: {cause}; name another file, or make this one readable and writable")
        return DamagedStore(
            f"{address}: it is no SQLite database, or it is damaged: {cause}; name another file, or put a copy back"
        )

    try:
        return _Telling(Sqlite(path, read_only=read_only), tell)
    except CheckpointError as error:
        raise tell(error) from error


def _postgres(address: str) -> Database:
    try:
        from statek_sim.agent.checkpoints.postgres import Postgres  # noqa: PLC0415  # an extra, when it is asked for
    except ImportError as error:
        raise BadStore(
            f"{shown(address)}: PostgreSQL needs psycopg ({error}): install pytest-statek[sql]"
        ) from None

    def tell(error: CheckpointError) -> BadStore:
        return BadStore(f"{shown(address)}: {str(error.__cause__).strip()}; check the address and the server")

    try:
        return _Telling(Postgres(address), tell)
    except CheckpointError as error:
        raise tell(error) from None
