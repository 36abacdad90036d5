"""Our SQLite store under agent-memory-integrity's edits, which change its rows behind its back.

Imported only where agent-memory-integrity is installed: see `tools.savers`. The attacker has the file; the key and the
anchor are the application's.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record

from statek_sim.agent.checkpoints.seals import Entry, MemoryAnchor, checkpoint_row
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.errors import BadStore
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore

SESSION, OTHER = "session-a", "session-b"
_COLUMNS = ("run", "name", "revision", "content")


class StoreAdapter(MemoryAdapter):
    """Session `session-a` is attacked; reading it is what notices."""

    name = "statek-sim sqlite store, key and anchor"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True
    detection_point = "read"

    def setup(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="statek-agmi-")
        self._path = Path(self._folder.name) / "store" / "sessions.db"
        self._path.parent.mkdir()
        self._anchor = MemoryAnchor()
        self._seeded = 0
        self._store = self._opened()

    def _opened(self) -> SessionStore:
        return SessionStore(
            SqlStore(Sqlite(self._path), clock=lambda: 0.0), key=b"a key of sixteen", anchor=self._anchor
        )

    def teardown(self) -> None:
        self._store.close()
        self._folder.cleanup()

    def reload(self) -> None:
        self._store.close()
        self._store = self._opened()

    def verify(self) -> bool:
        self.verify_detail = None
        try:
            return self._store.latest(SESSION) is not None
        except BadStore as error:
            self.verify_detail = str(error)
            return False

    def seed(self, n: int) -> None:
        for _ in range(n):
            self.append_genuine()

    def append_genuine(self) -> None:
        self._save(SESSION, f"genuine {self._seeded}")
        self._seeded += 1

    def seed_other(self, n: int) -> None:
        for number in range(n):
            self._save(OTHER, f"other {number}")

    def _save(self, session: str, said: str) -> None:
        lease = self._store.claim(session, worker="w", plan="p")
        self._store.save(lease, Entry(point="began", status="running", at=0.0, state={"said": said}))

    # -- behind its back ---------------------------------------------------------------------------------------

    def _rows(self, session: str) -> list[Record]:
        with sqlite3.connect(self._path) as raw:
            asked = f"SELECT {', '.join(_COLUMNS)} FROM statek_rows "
            asked += "WHERE run = ? AND name LIKE 'checkpoints/%' ORDER BY name"
            rows = raw.execute(asked, (session,)).fetchall()
        return [Record(seq=at, fields=dict(zip(_COLUMNS, row, strict=True))) for at, row in enumerate(rows)]

    def read_all_raw(self) -> list[Record]:
        return self._rows(SESSION)

    def read_other_raw(self) -> list[Record]:
        return self._rows(OTHER)

    def write_raw(self, record: Record) -> None:
        there = self.read_all_raw()
        changed = record.fields
        with sqlite3.connect(self._path) as raw:
            if record.seq < len(there):
                raw.execute(
                    "UPDATE statek_rows SET content = ? WHERE run = ? AND name = ?",
                    (changed["content"], SESSION, there[record.seq].fields["name"]),
                )
            else:
                raw.execute(
                    f"INSERT INTO statek_rows ({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?)",
                    tuple(changed[column] for column in _COLUMNS),
                )

    def delete_raw(self, seq: int) -> None:
        name = self.read_all_raw()[seq].fields["name"]
        with sqlite3.connect(self._path) as raw:
            raw.execute("DELETE FROM statek_rows WHERE run = ? AND name = ?", (SESSION, name))

    def replay_onto(self, seq: int, donor: Record) -> None:
        self.write_raw(Record(seq=seq, fields=dict(donor.fields)))

    def mutate_payload(self, record: Record) -> Record:
        content = record.fields["content"].replace("genuine", "altered")
        return Record(record.seq, record.fields | {"content": content})

    def forge_record(self, last: Record) -> Record:
        row = json.loads(last.fields["content"])
        row["of"]["state"] = {"said": "forged"}
        fields = last.fields | {"name": checkpoint_row(last.seq + 2), "content": json.dumps(row)}
        return Record(last.seq + 1, fields)

    def read_meta(self, seq: int) -> dict[str, Any]:
        content = json.loads(self.read_all_raw()[seq].fields["content"])["of"]
        return {name: value for name, value in content.items() if name != "state"}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        record = self.read_all_raw()[seq]
        row = json.loads(record.fields["content"])
        row["of"] |= meta
        self.write_raw(Record(seq, record.fields | {"content": json.dumps(row)}))

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['run']}/{record.fields['name']}"

    def payload_of(self, record: Record) -> str:
        return json.dumps(json.loads(record.fields["content"])["of"]["state"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["run"])

    def snapshot_store(self) -> Path:
        self._store.close()
        copy = Path(self._folder.name) / "copy"
        shutil.copytree(self._path.parent, copy)
        self._store = self._opened()
        return copy

    def restore_store(self, token: Path) -> None:
        self._store.close()
        shutil.rmtree(self._path.parent)
        shutil.copytree(token, self._path.parent)
        self._store = self._opened()
