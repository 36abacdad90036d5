"""The tables of the SQL store: those of 002 §4 with what keeps them right, and the way from one version to the next.

What the document's schema lets pass is refused: two checkpoints of one step, one without a session, an unknown
status, a state that is no object. Sessions have names instead of UUIDs.
"""

from __future__ import annotations

from typing import Final

from statek_sim.agent.checkpoints.database import Database, transaction
from statek_sim.errors import CheckpointError

_SESSIONS: Final = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY CHECK (length(id) > 0),
    task_type TEXT NOT NULL,
    plan TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'paused', 'completed', 'failed')),
    first_step INTEGER NOT NULL DEFAULT 1 CHECK (first_step > 0),
    head INTEGER NOT NULL DEFAULT 0 CHECK (head >= 0),
    head_seal TEXT NOT NULL DEFAULT '',
    seal TEXT NOT NULL DEFAULT '',
    created_at {time},
    updated_at {time}
)"""

_CHECKPOINTS: Final = """
CREATE TABLE checkpoints (
    id {id},
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    step_number INTEGER NOT NULL CHECK (step_number > 0),
    state {json} NOT NULL CHECK ({state_is_object}),
    metadata {json} NOT NULL CHECK ({metadata_is_object}),
    seal TEXT NOT NULL,
    created_at {time},
    UNIQUE (session_id, step_number)
)"""

_RECEIPTS: Final = """
CREATE TABLE receipts (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    step_number INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position > 0),
    receipt {json} NOT NULL CHECK ({receipt_is_object}),
    seal TEXT NOT NULL,
    created_at {time},
    PRIMARY KEY (session_id, step_number, position),
    FOREIGN KEY (session_id, step_number) REFERENCES checkpoints(session_id, step_number) ON DELETE CASCADE
)"""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (_SESSIONS, _CHECKPOINTS),
    (
        "ALTER TABLE sessions ADD COLUMN fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0)",
        "ALTER TABLE sessions ADD COLUMN worker TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN lease_until DOUBLE PRECISION NOT NULL DEFAULT 0",
        "CREATE INDEX idx_sessions_free ON sessions (status, lease_until, id)",
        _RECEIPTS,
    ),
)
"""What makes each version of the tables of the one before it."""

_LOCK: Final = 7_004_002
"""The number of PostgreSQL's lock under which tables are made."""


def migrate(database: Database) -> int:
    """Bring the tables to the newest version and return it.

    Raises `CheckpointError` for tables from the future, `Damaged` for those that are not what their version says.
    """
    with transaction(database):
        if database.words["json"] == "JSONB":
            database.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        table = "CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER PRIMARY KEY, applied_at {time})"
        database.execute(_filled(table, database))
        newest = database.execute("SELECT max(version) FROM schema_versions")[0][0]
        version = newest or 0
        if version > len(MIGRATIONS):
            raise CheckpointError(
                f"{database.place}: the tables have version {version}, and this package knows up to "
                f"{len(MIGRATIONS)}; update the package"
            )
        for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in statements:
                database.execute(_filled(statement, database))
            database.execute("INSERT INTO schema_versions (version) VALUES (?)", (number,))
    return len(MIGRATIONS)


def _filled(statement: str, database: Database) -> str:
    words = dict(database.words)
    objects = {
        f"{column}_is_object": words["is_object"].format(column=column)
        for column in ("state", "metadata", "receipt")
    }
    return statement.format(**words, **objects)
