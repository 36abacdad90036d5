"""Our stores, and those of others, under the public checker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statek_sim.agent.checkpoints.contract import StoreAdapter
from statek_sim.agent.checkpoints.seals import Entry, MemoryAnchor
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.codec import decoded, encoded
from statek_sim.store.database import Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.protocol import Lease
from statek_sim.store.sql import SqlStore


class OfOurs:
    """Sessions of ours as the checker has it: every process is a worker, and loading is taking over."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._leases: dict[str, Lease] = {}

    def save(self, session: str, state: Mapping[str, Any]) -> None:
        entry = Entry(point="began", status="running", at=0.0, state=state)
        self._store.save(self._lease(session), entry)

    def load(self, session: str) -> Mapping[str, Any] | None:
        kept = self._store.latest(session)
        if kept is not None:
            self._lease(session)
        return None if kept is None else kept.checkpoint.entry.state

    def _lease(self, session: str) -> Lease:
        if session not in self._leases:
            self._leases[session] = self._store.claim(session, worker="w", plan="p")
        return self._leases[session]

    def close(self) -> None:
        self._store.close()


KEY = b"a key of sixteen"


def files_sealed() -> Callable[[Path], StoreAdapter]:
    anchor = MemoryAnchor()
    return lambda folder: OfOurs(
        SessionStore(FileStore(RealDisk(folder), clock=lambda: 0.0), key=KEY, anchor=anchor)
    )


def sqlite_sealed() -> Callable[[Path], StoreAdapter]:
    anchor = MemoryAnchor()
    return lambda folder: OfOurs(
        SessionStore(SqlStore(Sqlite(folder / "x.db"), clock=lambda: 0.0), key=KEY, anchor=anchor)
    )


class PlainFiles:
    """A store as one is written in an hour: a file per checkpoint, whose session is not in its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, session: str, state: Mapping[str, Any]) -> None:
        content = json.dumps({"session": session, "state": encoded(state)})
        (self._folder / f"cp-{len(self._files()) + 1:04}.json").write_text(content)

    def load(self, session: str) -> Mapping[str, Any] | None:
        files = self._files()
        return decoded(json.loads(files[-1].read_text())["state"]) if files else None

    def close(self) -> None:
        pass

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("cp-*.json"))
