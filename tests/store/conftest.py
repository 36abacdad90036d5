"""Stores of runs to test: SQLite, and PostgreSQL on a server of the tests' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statek_sim.store.opening import open_store
from statek_sim.store.sql import SqlRuns
from tests.checkpoints.conftest import empty_postgres, postgres, seconds

__all__ = ["empty_postgres", "postgres", "seconds"]

MakeRuns = Callable[[], SqlRuns]
"""Opens the test's store once more, as another process would."""


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    conninfo: str = request.getfixturevalue("empty_postgres")
    told = dict(pair.split("=", 1) for pair in conninfo.split())
    return f"postgresql://{told['user']}@/{told['dbname']}?host={told['host']}"


@pytest.fixture
def make_runs(address: str, seconds: Callable[[], float]) -> Iterator[MakeRuns]:
    opened: list[SqlRuns] = []

    def make() -> SqlRuns:
        opened.append(open_store(address, clock=seconds, lease=60.0))
        return opened[-1]

    yield make
    for store in opened:
        store.close()
