"""Runs in a database, SQLite or PostgreSQL. Every change is one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from statek_sim.agent.checkpoints.database import Database, Row, Shared
from statek_sim.errors import BadStore, DamagedStore, RunHeld, RunTakenOver
from statek_sim.store.pieces import whole_rows
from statek_sim.store.store import LEASE, Changes, Lease, Listed, Stored
from statek_sim.store.tables import migrate, recognise
from statek_sim.values import JSON

_LONGEST: Final = 200


def _nobody(_worker: str) -> bool:
    """Know of nobody."""
    return False


def _about(where: str, text: str) -> dict[str, Any]:
    """Return what a run is about, from the text of its column; errors begin with `where`."""
    try:
        about: Any = json.loads(text)
    except ValueError as error:
        raise DamagedStore(f"{where}: what it is about is no JSON: {error}") from None
    if not isinstance(about, dict):
        raise DamagedStore(f"{where}: what it is about is no mapping: {about!r}")
    return about


def _whole(where: str, pieces: Mapping[str, str]) -> dict[str, str]:
    """Return the rows of a run; errors begin with `where`."""
    try:
        return whole_rows(pieces)
    except (DamagedStore, ValueError) as error:
        raise DamagedStore(f"{where}: {error}") from None


_HEAD: Final[dict[str, type]] = {"about": str, "status": str, "revision": int, "events": int}
_WORDS: Final[dict[type, str]] = {str: "a text", int: "a whole number"}


def _typed(where: str, columns: Mapping[str, type], rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return rows whose values are of their columns' types; `DamagedStore` otherwise, as SQLite keeps any in any."""
    for row in rows:
        for (name, kind), value in zip(columns.items(), row, strict=True):
            if not isinstance(value, kind):
                raise DamagedStore(
                    f"{where}: {name} is {value!r:.80}, expected {_WORDS[kind]}; put a copy of the store back"
                )
    return rows


_UNREADABLE: Final = 1 << 30
"""What counts for a fence that cannot be read: more than any lease was given, so that none of them is valid again."""


def _locked(database: Database, run: str) -> list[Row]:
    """Lock a run that somebody has to go on with, and return who holds it; nothing where another worker locks it.

    One row at a time: who locks all of them leaves nothing for those who ask meanwhile.
    """
    return database.execute(
        "SELECT fence, revision, worker, lease_until FROM statek_runs WHERE status = 'running' AND id = ? "
        f"{database.words['skip_locked']}",
        (run,),
    )


def _holding(fence: Any, revision: Any, worker: Any, until: Any) -> tuple[int, int, str, float]:
    """Return who holds a run; one of whom that cannot be read holds it no longer."""
    return (
        fence if isinstance(fence, int) else _UNREADABLE,
        revision if isinstance(revision, int) else 0,
        worker if isinstance(worker, str) else "",
        until if isinstance(until, int | float) else 0.0,
    )


def _listed(run: str, status: Any, *holding: Any, now: float, is_gone: Callable[[str], bool]) -> Listed:
    _, revision, worker, until = _holding(0, *holding)
    status = status if isinstance(status, str) else "damaged"
    if until > now and not is_gone(worker):
        return Listed(run=run, status=status, revision=revision, worker=worker, left=until - now)
    return Listed(run=run, status=status, revision=revision, worker="", left=0.0)


class SqlRuns:
    """A `RunStore` in a database, whose tables are made or brought up to date; the store closes it.

    One that is `read_only` must be there, and only `load` and `runs` are asked of it.

    `clock` returns seconds by which leases are measured, alike for all workers; `lease` are the seconds of one.
    `is_gone` knows of workers that are certainly dead, whose leases need not run out. `address` is what errors
    call the store.
    """

    def __init__(
        self,
        database: Database,
        *,
        address: str,
        clock: Callable[[], float],
        lease: float = LEASE,
        is_gone: Callable[[str], bool] = _nobody,
        read_only: bool = False,
    ) -> None:
        self.address = address
        self._is_gone = is_gone
        self._database = database
        self._clock = clock
        self.lease_seconds = lease
        opened = recognise if read_only else migrate
        self._shared = Shared(database, lambda tables: opened(tables, address))

    def close(self) -> None:
        """Close the connection."""
        self._shared.close()

    # -- whose a run is ----------------------------------------------------------------------------------------

    def begin(self, run: str, about: Mapping[str, JSON], *, worker: str) -> Lease:
        """Make a run and take it; `BadStore` when there is one of this name."""
        if not run or len(run) > _LONGEST or not run.isprintable():
            raise BadStore(
                f"{self.address}: a run's name has 1 to {_LONGEST} printable characters; got {run!r}"
            )
        with self._shared.transaction() as database:
            made = database.execute(
                "INSERT INTO statek_runs (id, about) VALUES (?, ?) ON CONFLICT (id) DO NOTHING RETURNING id",
                (run, json.dumps(about)),
            )
            if not made:
                raise BadStore(
                    f"{self.address}: run {run!r} is in the store already: go on with it, or name another store"
                )
            return self._take(run, worker, fence=0, revision=0)

    def claim(self, run: str, *, worker: str) -> Lease:
        """Take a run; raises `RunHeld` while another worker's lease runs, `BadStore` when there is none."""
        with self._shared.transaction() as database:
            rows = database.execute(
                "SELECT fence, revision, worker, lease_until FROM statek_runs WHERE id = ? "
                f"{database.words['for_update']}",
                (run,),
            )
            if not rows:
                raise self._unknown(run)
            fence, revision, holder, until = _holding(*rows[0])
            left = until - self._clock()
            if holder not in ("", worker) and left > 0 and not self._is_gone(holder):
                raise RunHeld(
                    f"{self.address}: run {run!r}: worker {holder!r} works on it, and its lease runs for "
                    f"{left:.0f} s yet; wait for it, or end that worker"
                )
            return self._take(run, worker, fence=fence, revision=revision)

    def claim_next(self, *, worker: str, besides: Collection[str] = ()) -> Lease | None:
        """Take one of the runs that somebody has to go on with and that are nobody's, `besides` some; None for none."""
        with self._shared.transaction() as database:
            now = self._clock()
            rows = database.execute(
                "SELECT id FROM statek_runs WHERE status = 'running' ORDER BY lease_until, id"
            )
            for (run,) in rows:
                free = () if run in besides else _locked(database, str(run))
                for holding in free:
                    fence, revision, holder, until = _holding(*holding)
                    if until <= now or self._is_gone(holder):
                        return self._take(str(run), worker, fence=fence, revision=revision)
            return None

    def _take(self, run: str, worker: str, *, fence: int, revision: int) -> Lease:
        self._database.execute(
            "UPDATE statek_runs SET fence = ?, worker = ?, lease_until = ? WHERE id = ?",
            (fence + 1, worker, self._clock() + self.lease_seconds, run),
        )
        return Lease(run=run, worker=worker, fence=fence + 1, revision=revision)

    def renew(self, lease: Lease) -> None:
        """Begin the time of a lease anew, also from another thread; raises `RunTakenOver`."""
        with self._shared.transaction() as database:
            found = database.execute(
                "UPDATE statek_runs SET lease_until = ? WHERE id = ? AND fence = ? RETURNING id",
                (self._clock() + self.lease_seconds, lease.run, lease.fence),
            )
        if not found:
            raise self._taken_over(lease)

    def release(self, lease: Lease) -> None:
        """Give a run back; nothing happens to one that was taken over."""
        with self._shared.transaction() as database:
            database.execute(
                "UPDATE statek_runs SET worker = '', lease_until = 0 WHERE id = ? AND fence = ?",
                (lease.run, lease.fence),
            )

    # -- what is in it -----------------------------------------------------------------------------------------

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Make changes durable and return the lease with their revision; raises `RunTakenOver`."""
        revision = lease.revision + 1
        with self._shared.transaction() as database:
            found = database.execute(
                "UPDATE statek_runs SET revision = ?, status = ?, events = events + ?, lease_until = ? "
                "WHERE id = ? AND fence = ? AND revision = ? RETURNING events",
                (
                    revision,
                    changes.status,
                    len(changes.events),
                    self._clock() + self.lease_seconds,
                    lease.run,
                    lease.fence,
                    lease.revision,
                ),
            )
            if not found:
                raise self._taken_over(lease, f" (revision {lease.revision})")
            for name, content in changes.rows.items():
                database.execute(
                    "INSERT INTO statek_rows (run, name, revision, content) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (run, name) DO UPDATE SET revision = excluded.revision, content = excluded.content",
                    (lease.run, name, revision, content),
                )
            for name in changes.gone:
                database.execute("DELETE FROM statek_rows WHERE run = ? AND name = ?", (lease.run, name))
            first = found[0][0] - len(changes.events) + 1
            for number, event in enumerate(changes.events, first):
                database.execute(
                    "INSERT INTO statek_events (run, number, content) VALUES (?, ?, ?)",
                    (lease.run, number, event),
                )
        return replace(lease, revision=revision)

    def load(self, run: str) -> Stored:
        """Return a run as it was committed last; raises `BadStore` and `DamagedStore`."""
        with self._shared.transaction("begin_read") as database:
            heads = database.execute(
                "SELECT about, status, revision, events FROM statek_runs WHERE id = ?", (run,)
            )
            if not heads:
                raise self._unknown(run)
            rows = database.execute("SELECT name, content FROM statek_rows WHERE run = ?", (run,))
            events = database.execute(
                "SELECT number, content FROM statek_events WHERE run = ? ORDER BY number", (run,)
            )
        where = f"{self.address}: run {run!r}"
        ((about, status, revision, count),) = _typed(where, _HEAD, heads)
        _typed(where, {"name": str, "content": str}, rows)
        _typed(where, {"number": int, "content": str}, events)
        if [number for number, _ in events] != [*range(1, count + 1)]:
            raise DamagedStore(
                f"{where}: {count} events were committed, and {len(events)} are there; put a "
                "copy of the store back"
            )
        return Stored(
            run=run,
            about=_about(where, about),
            status=status,
            revision=revision,
            rows=_whole(where, dict(rows)),
            events=[content for _, content in events],
        )

    def runs(self) -> Sequence[Listed]:
        """Return all runs, by name; of one that is damaged what can be read of it."""
        now = self._clock()
        with self._shared.alone:
            rows = self._database.execute(
                "SELECT id, status, revision, worker, lease_until FROM statek_runs ORDER BY id"
            )
        _typed(self.address, {"a run's name": str}, [row[:1] for row in rows])
        return [_listed(*row, now=now, is_gone=self._is_gone) for row in rows]

    def _taken_over(self, lease: Lease, at: str = "") -> RunTakenOver:
        return RunTakenOver(
            f"{self.address}: run {lease.run!r}: another worker has taken it over from {lease.worker!r}{at}, which was "
            f"not heard of for {self.lease_seconds:g} s; nothing that it does from now on is kept"
        )

    def _unknown(self, run: str) -> BadStore:
        known = ", ".join(repr(one.run) for one in self.runs()) or "none"
        return BadStore(f"{self.address}: there is no run {run!r}; there are: {known}")
