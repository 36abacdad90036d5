"""Our stores, and those of others, under the public checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statek_sim.agent.checkpoints.contract import StoreAdapter
from statek_sim.agent.checkpoints.database import Sqlite
from statek_sim.agent.checkpoints.disk import RealDisk
from statek_sim.agent.checkpoints.document import DocumentStore
from statek_sim.agent.checkpoints.files import FileStore
from statek_sim.agent.checkpoints.records import Entry, Lease
from statek_sim.agent.checkpoints.seal import MemoryAnchor
from statek_sim.agent.checkpoints.sql import SqlStore
from statek_sim.agent.checkpoints.store import CheckpointStore


class OfOurs:
    """A `CheckpointStore` as the checker has it: every process is a worker, and loading is taking over."""

    def __init__(self, store: CheckpointStore) -> None:
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
    return lambda folder: OfOurs(FileStore(RealDisk(folder), clock=lambda: 0.0, key=KEY, anchor=anchor))


def sqlite_sealed() -> Callable[[Path], StoreAdapter]:
    anchor = MemoryAnchor()
    return lambda folder: OfOurs(SqlStore(Sqlite(folder / "x.db"), clock=lambda: 0.0, key=KEY, anchor=anchor))


def document(folder: Path) -> StoreAdapter:
    return OfOurs(DocumentStore(RealDisk(folder)))
