"""Stores to test: files on a real disk and on one in memory, SQLite, and PostgreSQL on a server of the tests' own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.database import Sqlite
from statek_sim.agent.checkpoints.disk import RealDisk
from statek_sim.agent.checkpoints.files import FileStore
from statek_sim.agent.checkpoints.seal import Anchor
from statek_sim.agent.checkpoints.sql import SqlStore
from statek_sim.agent.checkpoints.store import CheckpointStore
from tools.npm import NotHere
from tools.postgres import server

MakeStore = Callable[..., CheckpointStore]
"""Opens the test's store once more, as another process would: `make(key=..., anchor=...)`."""


class Seconds:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a server; with STATEK_POSTGRES_REQUIRED set, one that cannot be had is a failure."""
    try:
        with server() as conninfo:
            yield conninfo
    except NotHere as why:
        if os.environ.get("STATEK_POSTGRES_REQUIRED"):
            raise
        pytest.skip(f"no PostgreSQL to test with: {why}")


@pytest.fixture
def empty_postgres(postgres: str) -> str:
    """A server without our tables."""
    import psycopg  # where there is no PostgreSQL, psycopg may be missing too

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres


@pytest.fixture(params=["files", "sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path, seconds: Seconds) -> Iterator[MakeStore]:
    opened: list[CheckpointStore] = []
    conninfo = request.getfixturevalue("empty_postgres") if request.param == "postgres" else ""

    def make(*, key: bytes | None = None, anchor: Anchor | None = None) -> CheckpointStore:
        if request.param == "files":
            store: CheckpointStore = FileStore(
                RealDisk(tmp_path / "sessions"), clock=seconds, key=key, anchor=anchor
            )
        elif request.param == "sqlite":
            store = SqlStore(Sqlite(tmp_path / "sessions.db"), clock=seconds, key=key, anchor=anchor)
        else:
            from statek_sim.agent.checkpoints.postgres import Postgres

            store = SqlStore(Postgres(conninfo), clock=seconds, key=key, anchor=anchor)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()
