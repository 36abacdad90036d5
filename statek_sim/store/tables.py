"""The tables of a store, and the way from one version to the next."""

from __future__ import annotations

from typing import Final

from statek_sim.errors import BadStore, Damaged
from statek_sim.store.database import Database, Row, transaction

FORMAT: Final = "statek-sim/store"
"""What a store of ours says of itself."""

_RUNS: Final = """
CREATE TABLE statek_runs (
    id TEXT PRIMARY KEY CHECK (length(id) > 0),
    kind TEXT NOT NULL CHECK (kind IN ('jobs', 'session')),
    about TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'running'
        CHECK (status IN ('running', 'ended', 'paused', 'completed', 'failed')),
    revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    events INTEGER NOT NULL DEFAULT 0 CHECK (events >= 0),
    fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    worker TEXT NOT NULL DEFAULT '',
    lease_until DOUBLE PRECISION NOT NULL DEFAULT 0
)"""

_ROWS: Final = """
CREATE TABLE statek_rows (
    run TEXT NOT NULL REFERENCES statek_runs(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run, name)
)"""

_EVENTS: Final = """
CREATE TABLE statek_events (
    run TEXT NOT NULL REFERENCES statek_runs(id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number > 0),
    content TEXT NOT NULL,
    PRIMARY KEY (run, number)
)"""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (_RUNS, _ROWS, _EVENTS, "CREATE INDEX statek_runs_free ON statek_runs (kind, status, lease_until, id)"),
)
"""The statements that make each version of the tables from the one before it."""


def recognise(database: Database) -> None:
    """Change nothing; `BadStore` for what is no store of ours, and for tables of a newer package."""
    try:
        rows = database.execute("SELECT format, version FROM statek_store")
    except BadStore as error:
        if "statek_store" not in str(error):
            raise
        rows = []
    if not rows:
        raise BadStore(
            f"{database.address}: it is no store: there is nothing in a table statek_store; name another store"
        )
    _version(rows, database.address)


def migrate(database: Database) -> None:
    """Bring the tables to the newest version; `BadStore` for those of a newer package, and of another program."""
    with transaction(database):
        database.execute(database.dialect["lock"])
        database.execute(
            "CREATE TABLE IF NOT EXISTS statek_store (format TEXT NOT NULL, version INTEGER NOT NULL)"
        )
        version = _version(database.execute("SELECT format, version FROM statek_store"), database.address)
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                database.execute(statement)
        if version < len(MIGRATIONS):
            database.execute("DELETE FROM statek_store")
            database.execute(
                "INSERT INTO statek_store (format, version) VALUES (?, ?)", (FORMAT, len(MIGRATIONS))
            )


def _version(rows: list[Row], address: str) -> int:
    if not rows:
        return 0
    name, version = rows[0]
    if len(rows) != 1 or name != FORMAT or not isinstance(version, int) or version < 1:
        raise Damaged(
            f"{address}: its table statek_store has {rows!r}, expected {FORMAT!r} and a version; name another store"
        )
    if version > len(MIGRATIONS):
        raise BadStore(
            f"{address}: its tables have version {version}, and this package reads up to {len(MIGRATIONS)}; update the "
            "package"
        )
    return version
