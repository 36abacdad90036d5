"""Stores to test: files, SQLite, and PostgreSQL on a server of the tests' own; runs of both kinds in each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statek_sim.agent.checkpoints.seals import Anchor
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Store
from tools.npm import NotHere
from tools.postgres import server

MakeStore = Callable[[], Store]
"""Opens the test's store once more, as another process would."""

MakeSessions = Callable[..., SessionStore]
"""Opens the test's store of sessions once more: `make(key=..., anchor=...)`."""


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
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "files":
        return f"files:{tmp_path / 'runs'}"
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    conninfo: str = request.getfixturevalue("empty_postgres")
    parts = dict(pair.split("=", 1) for pair in conninfo.split())
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


@pytest.fixture
def make_store(address: str, seconds: Seconds) -> Iterator[MakeStore]:
    opened: list[Store] = []

    def make() -> Store:
        opened.append(open_store(address, clock=seconds, lease=60.0))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def make_sessions(make_store: MakeStore) -> MakeSessions:
    def make(*, key: bytes | None = None, anchor: Anchor | None = None) -> SessionStore:
        return SessionStore(make_store(), key=key, anchor=anchor)

    return make
