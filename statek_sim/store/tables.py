"""The tables of a store of runs, and the way from one version to the next."""

from __future__ import annotations

from typing import Final

from statek_sim.agent.checkpoints.database import Database, transaction
from statek_sim.errors import BadStore
from statek_sim.store.pieces import MARK, PIECE

FORMAT: Final = "statek-sim/runs"
"""What a store of ours says of itself."""

_RUNS: Final = """
CREATE TABLE statek_runs (
    id TEXT PRIMARY KEY CHECK (length(id) > 0),
    about TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'ended')),
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

_FURTHER_PIECES: Final = f"""
INSERT INTO statek_rows (run, name, revision, content)
WITH RECURSIVE pieces (run, name, revision, content, number) AS (
    SELECT run, name, revision, content, 1 FROM statek_rows WHERE LENGTH(content) > {PIECE}
    UNION ALL
    SELECT run, name, revision, content, number + 1 FROM pieces WHERE LENGTH(content) > {PIECE} * (number + 1)
)
SELECT run, name || '{MARK}' || CAST(number AS TEXT), revision, SUBSTR(content, number * {PIECE} + 1, {PIECE})
FROM pieces"""

_FIRST_PIECES: Final = (
    f"UPDATE statek_rows SET content = SUBSTR(content, 1, {PIECE}) WHERE LENGTH(content) > {PIECE}"
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (_RUNS, _ROWS, _EVENTS),
    ("CREATE INDEX statek_runs_free ON statek_runs (status, lease_until, id)",),
    # Long rows are in pieces: the tables are the same, and an older package would read a piece for a row.
    (_FURTHER_PIECES, _FIRST_PIECES),
)
"""What makes each version of the tables of the one before it."""

_LOCK: Final = 7_004_003
"""The number of PostgreSQL's lock under which tables are made."""


def recognise(database: Database, address: str) -> None:
    """Change nothing; `BadStore` for what is no store of ours, and for tables from the future."""
    try:
        rows = database.execute("SELECT format, version FROM statek_store")
    except BadStore as error:
        if "statek_store" not in str(error):
            raise
        rows = []
    if not rows:
        raise BadStore(
            f"{address}: it is no store of runs, there is nothing in a table statek_store; name another store"
        )
    _version(rows, address)


def migrate(database: Database, address: str) -> None:
    """Bring the tables to the newest version; `BadStore` for tables from the future, and for somebody else's."""
    with transaction(database):
        if database.words["json"] == "JSONB":
            database.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        database.execute(
            "CREATE TABLE IF NOT EXISTS statek_store (format TEXT NOT NULL, version INTEGER NOT NULL)"
        )
        rows = database.execute("SELECT format, version FROM statek_store")
        version = _version(rows, address)
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                database.execute(statement)
        if version < len(MIGRATIONS):
            database.execute("DELETE FROM statek_store")
            database.execute(
                "INSERT INTO statek_store (format, version) VALUES (?, ?)", (FORMAT, len(MIGRATIONS))
            )


def _version(rows: list[tuple[object, ...]], address: str) -> int:
    if not rows:
        return 0
    name, version = rows[0]
    if len(rows) != 1 or name != FORMAT or not isinstance(version, int) or version < 1:
        raise BadStore(
            f"{address}: it says of itself {rows!r}, expected {FORMAT!r} and a version; name another store"
        )
    if version > len(MIGRATIONS):
        raise BadStore(
            f"{address}: its tables have version {version}, and this package knows up to {len(MIGRATIONS)}; update the "
            "package"
        )
    return version
