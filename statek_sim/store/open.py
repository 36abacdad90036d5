"""Opens a store by its address: `sqlite:PATH`, `files:FOLDER`, or `postgresql://...` in libpq's syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from statek_sim.errors import BadStore
from statek_sim.store.database import Database, Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.protocol import LEASE, Store
from statek_sim.store.sql import SqlStore
from statek_sim.store.worker import is_gone, real_seconds

_SQLITE: Final = "sqlite:"
_FILES: Final = "files:"
_POSTGRES: Final = ("postgresql://", "postgres://")
_PASSWORD: Final = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)
"""Matches a password given as a parameter in an address, in libpq's syntax."""
_ADDRESSES: Final = "expected 'sqlite:PATH', 'files:FOLDER' or 'postgresql://USER@HOST/DATABASE'"


def open_store(
    address: str,
    *,
    clock: Callable[[], float] = real_seconds,
    lease: float = LEASE,
    must_exist: bool = False,
    read_only: bool = False,
) -> Store:
    """Open the store at an address; raises `BadStore` for an invalid address or a missing store.

    `clock` returns the time in seconds, shared by all workers; `lease` is the lease time in seconds. The
    store is created unless it `must_exist`; a `read_only` store must exist and is not modified.
    """
    if address.startswith(_FILES):
        folder = _path(address, _FILES)
        if (must_exist or read_only) and not folder.is_dir():
            raise BadStore(f"{address}: no such folder; `statek-sim run --store {address}` creates it")
        return FileStore(RealDisk(folder), address=address, clock=clock, lease=lease, is_gone=is_gone)
    if must_exist and not read_only:
        # Check this before the tables are migrated, so that another program's database stays unchanged.
        open_store(address, clock=clock, read_only=True).close()
    if address.startswith(_SQLITE):
        database: Database = _sqlite(address, read_only=read_only)
    elif address.startswith(_POSTGRES):
        database = _postgres(address)
    else:
        raise BadStore(f"--store {address!r}: {_ADDRESSES}")
    return SqlStore(database, clock=clock, lease=lease, is_gone=is_gone, read_only=read_only)


def without_password(address: str) -> str:
    """Return an address without its password, for display."""
    scheme, mark, rest = address.partition("://")
    user, at, place = rest.rpartition("@")
    without = address if not (mark and at) else f"{scheme}://{user.partition(':')[0]}@{place}"
    return _PASSWORD.sub(r"\1***", without) if mark else without


def _path(address: str, scheme: str) -> Path:
    path = Path(address.removeprefix(scheme))
    if not path.name:
        raise BadStore(f"--store {address!r}: {_ADDRESSES}")
    if not path.parent.is_dir():
        raise BadStore(f"{address}: folder {path.parent} does not exist; create it first")
    return path


def _sqlite(address: str, *, read_only: bool) -> Database:
    path = _path(address, _SQLITE)
    if read_only and not path.is_file():
        raise BadStore(f"{address}: no such file; `statek-sim run --store {address}` creates it")
    return Sqlite(path, address=address, read_only=read_only)


def _postgres(address: str) -> Database:
    shown = without_password(address)
    try:
        from statek_sim.store.postgres import Postgres  # noqa: PLC0415  # an extra, when it is asked for
    except ImportError as error:
        raise BadStore(
            f"{shown}: PostgreSQL requires psycopg ({error}); install pytest-statek[sql]"
        ) from None
    return Postgres(address, address=shown)
