"""What of a scenario's runs is durable: their sessions, in a store like any other."""

from __future__ import annotations

from collections.abc import Callable

from statek_sim.agent.checkpoints.persistence import entry_of
from statek_sim.agent.checkpoints.records import Kept
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.agent.effects import Receipt, Snapshot
from statek_sim.store.database import Sqlite
from statek_sim.store.protocol import Lease
from statek_sim.store.sql import SqlStore


class Sessions:
    """The sessions of one scenario's jobs, by their names, in a database in memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._store = SessionStore(SqlStore(Sqlite(":memory:"), clock=clock))
        self._leases: dict[str, Lease] = {}

    def committed(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable."""
        self._store.save(self._lease(snapshot.job), entry_of(snapshot))

    def receipted(self, receipt: Receipt) -> None:
        """Make a receipt durable, of a run that commits."""
        if receipt.job in self._leases:
            self._store.note(self._leases[receipt.job], receipt)

    def kept(self, job: str) -> Kept | None:
        """Return what is durable of a job, None when it never committed."""
        return self._store.latest(job)

    def close(self) -> None:
        """Forget everything."""
        self._store.close()

    def _lease(self, job: str) -> Lease:
        if job not in self._leases:
            self._leases[job] = self._store.claim(job, worker="scenario", plan=job)
        return self._leases[job]
