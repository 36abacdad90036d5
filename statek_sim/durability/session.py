"""One run of a store in the hands of one process: what it committed last, and what the next commit adds.

Long rows are stored in pieces, so that a commit writes what changed of them: most of them grow at their end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final

from statek_sim.durability.anchors import Anchors
from statek_sim.durability.graph import Graph
from statek_sim.durability.writing import Rows
from statek_sim.errors import BadStore, Damaged
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.status import RunLost
from statek_sim.store.protocol import Changes, Lease, Status, Store, Stored
from statek_sim.store.worker import Heartbeat
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


PIECE: Final = 8192
"""Characters of one piece; a row has only ASCII, so that these are bytes."""

MARK: Final = "#"
"""Between the name of a row and the number of a piece that is not its first; no row's own name has it."""


def changed_pieces(name: str, before: str | None, now: str) -> tuple[dict[str, str], list[str]]:
    """Return the pieces of a row that are new or other, by name, and the names of those that are gone."""
    old = "" if before is None else before
    changed = {}
    for first in range(0, max(len(now), 1), PIECE):
        piece = now[first : first + PIECE]
        if before is None or first >= len(old) or piece != old[first : first + PIECE]:
            changed[_named(name, first)] = piece
    first_gone = -(-len(now) // PIECE) * PIECE
    return changed, [_named(name, first) for first in range(max(first_gone, PIECE), len(old), PIECE)]


def all_pieces(name: str, row: str) -> list[str]:
    """Return the names of the pieces of a row."""
    return [_named(name, first) for first in range(0, max(len(row), 1), PIECE)]


def whole_rows(pieces: Mapping[str, str]) -> dict[str, str]:
    """Return the rows that these pieces are of, by name; `Damaged` where one is missing."""
    further: dict[str, dict[int, str]] = {}
    rows: dict[str, str] = {}
    for name, text in pieces.items():
        row, mark, number = name.partition(MARK)
        if mark and number.isdecimal():
            further.setdefault(row, {})[int(number)] = text
        else:
            rows[row] = text
    for row, texts in further.items():
        if row not in rows or sorted(texts) != [*range(1, len(texts) + 1)]:
            raise Damaged(f"row {row!r}: a piece of it is missing; put a copy of the store back")
        rows[row] += "".join(texts[number] for number in sorted(texts))
    return rows


def _named(name: str, first: int) -> str:
    return f"{name}{MARK}{first // PIECE}" if first else name
