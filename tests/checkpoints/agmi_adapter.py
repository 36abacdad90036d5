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

from statek_sim.agent.checkpoints.database import Sqlite
from statek_sim.agent.checkpoints.records import Entry
from statek_sim.agent.checkpoints.seal import MemoryAnchor
from statek_sim.agent.checkpoints.sql import SqlStore
from statek_sim.errors import CheckpointError

SESSION, OTHER = "session-a", "session-b"
_COLUMNS = ("session_id", "step_number", "state", "metadata", "seal")


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

    def _opened(self) -> SqlStore:
        return SqlStore(Sqlite(self._path), clock=lambda: 0.0, key=b"a key of sixteen", anchor=self._anchor)

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
        except CheckpointError as error:
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
            asked = f"SELECT {', '.join(_COLUMNS)} FROM checkpoints WHERE session_id = ? ORDER BY step_number"
            rows = raw.execute(asked, (session,)).fetchall()
        return [Record(seq=at, fields=dict(zip(_COLUMNS, row, strict=True))) for at, row in enumerate(rows)]

    def read_all_raw(self) -> list[Record]:
        return self._rows(SESSION)

    def read_other_raw(self) -> list[Record]:
        return self._rows(OTHER)

    def write_raw(self, record: Record) -> None:
        there = self.read_all_raw()
        told = record.fields
        with sqlite3.connect(self._path) as raw:
            if record.seq < len(there):
                number = there[record.seq].fields["step_number"]
                raw.execute(
                    "UPDATE checkpoints SET state = ?, metadata = ?, seal = ? WHERE session_id = ? AND step_number = ?",
                    (told["state"], told["metadata"], told["seal"], SESSION, number),
                )
            else:
                raw.execute(
                    f"INSERT INTO checkpoints ({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?)",
                    tuple(told[column] for column in _COLUMNS),
                )

    def delete_raw(self, seq: int) -> None:
        number = self.read_all_raw()[seq].fields["step_number"]
        with sqlite3.connect(self._path) as raw:
            raw.execute("DELETE FROM checkpoints WHERE session_id = ? AND step_number = ?", (SESSION, number))

    def replay_onto(self, seq: int, donor: Record) -> None:
        self.write_raw(Record(seq=seq, fields=dict(donor.fields)))

    def mutate_payload(self, record: Record) -> Record:
        return Record(
            record.seq, record.fields | {"state": record.fields["state"].replace("genuine", "altered")}
        )

    def forge_record(self, last: Record) -> Record:
        number = last.fields["step_number"] + 1
        return Record(last.seq + 1, last.fields | {"step_number": number, "state": '{"said":"forged"}'})

    def read_meta(self, seq: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.read_all_raw()[seq].fields["metadata"])
        return found

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        row = self.read_all_raw()[seq]
        self.write_raw(Record(seq, row.fields | {"metadata": json.dumps(meta)}))

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['session_id']}/{record.fields['step_number']}"

    def payload_of(self, record: Record) -> str:
        return str(record.fields["state"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["session_id"])

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
