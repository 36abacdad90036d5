"""One run of a store in the hands of one process: what it committed last, and what the next commit adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from statek_sim.durability.anchors import Anchors
from statek_sim.durability.graph import Graph
from statek_sim.durability.pieces import all_pieces, changed_pieces, whole_rows
from statek_sim.durability.writing import Rows
from statek_sim.errors import BadStore, Damaged
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.status import RunLost
from statek_sim.store.heartbeat import Heartbeat
from statek_sim.store.protocol import Changes, Lease, Status, Store, Stored
from statek_sim.trace import as_dict


class Session:
    """Commits what `saved` returns and the trace of a runtime, whose jobs from now on keep only what can be stored.

    `lease` is the newest one. While somebody is at work whose act is to be kept as a whole, inside of `acts`, nothing
    is committed.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        runtime: Runtime,
        anchors: Anchors,
        saved: Callable[[], Mapping[str, object]],
    ) -> None:
        self.lease = lease
        self._store = store
        self._runtime = runtime
        self._saved = saved
        self._rows: Rows = {}
        self._events = 0
        self._acting = 0
        self._lost: Exception | None = None
        self._heartbeat = Heartbeat(store, lease)
        self._graph = Graph(anchors, runtime.services.meter("gpt-4o"))
        runtime.host.why_not = self._graph.why_not

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Tell whatever a store is the reason for, while a run is made of it again, as a `Damaged`."""
        try:
            yield
        except Exception as error:
            what = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
            raise Damaged(
                f"{self._store.address}: run {self.lease.run!r}: what is stored cannot be gone on with: {what}; put a "
                "copy of the store back, or begin the run anew"
            ) from error

    def read(self, stored: Stored) -> dict[str, Any]:
        """Return what was saved at the last commit; in `reading` it raises `Damaged`."""
        rows = whole_rows(stored.rows)
        saved = self._graph.read(rows)
        self._rows, self._events = rows, len(stored.events)
        return saved

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep the lease, and raise what a commit inside failed with, whoever caught that on its way."""
        try:
            with self._heartbeat.beating():
                yield
        except RunLost as lost:
            raise lost.error from None
        except Exception:
            if self._lost is not None:
                raise self._lost from None
            raise

    @contextmanager
    def acts(self) -> Iterator[None]:
        """Commit what is done inside when it is over: all of it, or nothing."""
        self._acting += 1
        try:
            yield
        finally:
            self._acting -= 1
        self.commit()

    def commit(self, status: Status = "running") -> None:
        """Make durable what there is, unless somebody is in the middle of something.

        Raises `RunLost` when it fails, and at every call after that: the run in this process has gone on, and the
        store must not follow it.
        """
        self._lost = self._lost or self._heartbeat.taken
        if self._lost is not None:
            raise RunLost(self._lost) from self._lost
        if self._acting:
            return
        try:
            self._commit(status)
        except Exception as error:
            self._lost = error
            raise RunLost(error) from error

    def _commit(self, status: Status) -> None:
        # In the middle of an agent's code, too, everything is read.
        with access(FULL):
            rows, trace = self._graph.rows(self._saved()), self._runtime.trace.events
        lost = [name for name in self._rows if name not in rows]
        changed: dict[str, str] = {}
        gone = [piece for name in lost for piece in all_pieces(name, self._rows[name])]
        for name, row in rows.items():
            before = self._rows.get(name)
            if before != row:
                pieces, left = changed_pieces(name, before, row)
                changed.update(pieces)
                gone += left
        changes = Changes(
            rows=changed,
            gone=gone,
            events=[_event_text(event) for event in trace[self._events :]],
            status=status,
        )
        if changes or status != "running":
            self.lease = self._store.commit(self.lease, changes)
        self._graph.forget(lost)
        self._rows, self._events = rows, len(trace)

    def release(self) -> None:
        """Give the run back; a store that failed already may fail at this, too: its lease runs out."""
        with suppress(BadStore) if self._lost is not None else nullcontext():
            self._store.release(self.lease)


def _event_text(event: Any) -> str:
    return json.dumps(as_dict(event), default=dict, separators=(",", ":"))
