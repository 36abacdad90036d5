"""Sessions in a database: 002 §4's tables, SQLite or PostgreSQL. Every change is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from statek_sim.agent.checkpoints.codec import canonical, from_text
from statek_sim.agent.checkpoints.database import Database, Row, Shared
from statek_sim.agent.checkpoints.migrations import migrate
from statek_sim.agent.checkpoints.records import Entry, Kept, Lease, Status
from statek_sim.agent.checkpoints.refusals import fenced, held, other_plan
from statek_sim.agent.checkpoints.sealed import (
    Sheet,
    check_chain,
    checkpoint_of,
    receipt_from,
    receipt_json,
    receipt_seal,
    sheet_of,
)
from statek_sim.agent.checkpoints.store import check_keep, check_name, steadily
from statek_sim.agent.checkpoints.terms import StoreTerms, Terms
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged, Fenced, Held, OtherPlan
from statek_sim.values import JSON

_COLUMNS: Final = "id, plan, status, first_step, head, head_seal, seal, fence, worker, lease_until"


@dataclass(frozen=True, slots=True)
class _Session:
    """One row of `sessions`."""

    id: str
    plan: str
    status: str
    first: int
    head: int
    head_seal: str
    seal: str
    fence: int
    worker: str
    until: float

    @property
    def content(self) -> JSON:
        """What the row's seal covers: which checkpoints there are."""
        return {
            "session": self.id,
            "plan": self.plan,
            "first": self.first,
            "head": self.head,
            "seal": self.head_seal,
        }


_KINDS: Final = (str, str, str, int, int, str, str, int, str, float | int)
"""What the columns of `_COLUMNS` are. SQLite takes anything for them, whatever a table says."""


def _session_of(row: Row) -> _Session:
    """Return a row of `sessions`; `Damaged` for what no store put there."""
    for name, value, kind in zip(_COLUMNS.split(", "), row, _KINDS, strict=True):
        if not isinstance(value, kind):
            raise Damaged(
                f"session {row[0]!r}: its {name} is {value!r}, which was not saved there: somebody changed it; put a "
                "copy back, or remove the session and begin it anew"
            )
    return _Session(*row)


class SqlStore:
    """A `CheckpointStore` in a database, whose tables are made or brought up to date; the store closes it.

    `terms` are those of every store: see `terms.StoreTerms`.
    """

    def __init__(self, database: Database, **terms: Unpack[StoreTerms]) -> None:
        self._database = database
        self._terms = Terms(**terms)
        self._sealer = self._terms.sealer
        self._shared = Shared(database, migrate)

    def close(self) -> None:
        """Close the connection."""
        self._shared.close()

    # -- whose a session is ------------------------------------------------------------------------------------

    def claim(self, session: str, *, worker: str, plan: str, kind: str = "agent") -> Lease:
        """Take a session; raises `Held` and `OtherPlan`."""
        check_name(session)
        with self._shared.transaction() as database:
            new = _Session(session, plan, "running", 1, 0, "", "", 0, "", 0.0)
            database.execute(
                "INSERT INTO sessions (id, task_type, plan, seal) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (session, kind, plan, self._sealer.seal(new.content)),
            )
            row = self._row(session, lock=True)
            if row.plan != plan:
                raise OtherPlan(other_plan(session, row.plan, plan))
            left = row.until - self._terms.clock()
            if row.worker not in ("", worker) and left > 0:
                raise Held(held(session, row.worker, left))
            return self._take(row, worker)

    def claim_next(self, *, worker: str) -> Lease | None:
        """Take the session that waits longest of those that are running and nobody's, None when there is none."""
        with self._shared.transaction() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM sessions WHERE status = 'running' AND lease_until <= ? "
                f"ORDER BY lease_until, id LIMIT 1 {database.words['skip_locked']}",
                (self._terms.clock(),),
            )
            return self._take(_session_of(rows[0]), worker) if rows else None

    def _take(self, row: _Session, worker: str) -> Lease:
        self._database.execute(
            "UPDATE sessions SET fence = ?, worker = ?, lease_until = ? WHERE id = ?",
            (row.fence + 1, worker, self._terms.until(), row.id),
        )
        return Lease(session=row.id, fence=row.fence + 1, worker=worker, seconds=self._terms.lease)

    def renew(self, lease: Lease) -> None:
        """Begin a lease anew, for a worker that has nothing to save yet; raises `Fenced`."""
        with self._shared.transaction() as database:
            row = self._held(lease)
            database.execute(
                "UPDATE sessions SET lease_until = ? WHERE id = ?", (self._terms.until(), row.id)
            )

    def release(self, lease: Lease) -> None:
        """Give a session back; nothing happens to one that was taken over."""
        with self._shared.transaction() as database:
            database.execute(
                "UPDATE sessions SET worker = '', lease_until = ? WHERE id = ? AND fence = ?",
                (self._terms.clock(), lease.session, lease.fence),
            )

    # -- saving ------------------------------------------------------------------------------------------------

    def save(self, lease: Lease, entry: Entry) -> int:
        """Make an entry durable and return its number; raises `Fenced`."""
        with self._shared.transaction() as database:
            row = self._held(lease)
            sheet = sheet_of(
                row.id,
                row.head + 1,
                entry,
                plan=row.plan,
                fence=lease.fence,
                previous=row.head_seal,
                sealer=self._sealer,
            )
            json = f"CAST(? AS {database.words['json']})"
            database.execute(
                "INSERT INTO checkpoints (session_id, step_number, state, metadata, seal) "
                f"VALUES (?, ?, {json}, {json}, ?)",
                (row.id, sheet.number, sheet.state, canonical(dict(sheet.metadata)), sheet.seal),
            )
            self._put(row, status=entry.status, first=row.first, head=sheet.number, head_seal=sheet.seal)
        self._terms.anchored(row.id, sheet.number, sheet.seal)
        return sheet.number

    def _put(self, row: _Session, *, status: str, first: int, head: int, head_seal: str) -> None:
        new = _Session(row.id, row.plan, status, first, head, head_seal, "", row.fence, row.worker, row.until)
        self._database.execute(
            "UPDATE sessions SET status = ?, first_step = ?, head = ?, head_seal = ?, seal = ?, lease_until = ?, "
            f"updated_at = {self._database.words['now']} WHERE id = ?",
            (
                status,
                first,
                head,
                head_seal,
                self._sealer.seal(new.content),
                self._terms.until(),
                row.id,
            ),
        )

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Make a receipt durable that came after the newest checkpoint; raises `Fenced`."""
        with self._shared.transaction() as database:
            row = self._held(lease)
            known = database.execute(
                "SELECT position, seal FROM receipts WHERE session_id = ? AND step_number = ? "
                "ORDER BY position DESC LIMIT 1",
                (row.id, row.head),
            )
            position, before = known[0] if known else (0, row.head_seal)
            if not isinstance(position, int) or not isinstance(before, str):
                raise Damaged(
                    f"session {row.id!r}, receipt {position!r} after checkpoint {row.head}: somebody changed it"
                )
            content = receipt_json(receipt)
            database.execute(
                "INSERT INTO receipts (session_id, step_number, position, receipt, seal) "
                f"VALUES (?, ?, ?, CAST(? AS {database.words['json']}), ?)",
                (
                    row.id,
                    row.head,
                    position + 1,
                    canonical(dict(content)),
                    receipt_seal(content, before, self._sealer),
                ),
            )

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove all but the newest `keep` (1 or more) checkpoints; return how many."""
        check_keep(keep)
        with self._shared.transaction() as database:
            row = self._held(lease)
            first = max(row.first, row.head - keep + 1)
            gone = database.execute(
                "DELETE FROM checkpoints WHERE session_id = ? AND step_number < ? RETURNING step_number",
                (row.id, first),
            )
            self._put(row, status=row.status, first=first, head=row.head, head_seal=row.head_seal)
        return len(gone)

    # -- reading -----------------------------------------------------------------------------------------------

    def latest(self, session: str) -> Kept | None:
        """Return a session's newest checkpoint, None where there is none yet; raises `Damaged`."""
        check_name(session)
        return steadily(lambda: self._latest(session), lambda: self._alone(session))

    def _alone(self, session: str) -> _Session | None:
        with self._shared.alone:
            return self._find(session)

    def _latest(self, session: str) -> Kept | None:
        with self._shared.transaction("begin_read"):
            row, sheets = self._find(session), self._sheets(session)
            if row is None:
                check_chain(session, sheets, self._sealer, self._terms.anchor, first=1, head=0, seal="")
                return None
            self._sealer.check(row.content, row.seal, what=f"session {session!r}")
            check_chain(
                session,
                sheets,
                self._sealer,
                self._terms.anchor,
                first=row.first,
                head=row.head,
                seal=row.head_seal,
            )
            if not sheets:
                return None
            return Kept(checkpoint_of(session, sheets[-1]), self._receipts(row))

    def _sheets(self, session: str) -> list[Sheet]:
        rows = self._database.execute(
            "SELECT step_number, CAST(metadata AS TEXT), CAST(state AS TEXT), seal FROM checkpoints "
            "WHERE session_id = ? ORDER BY step_number",
            (session,),
        )
        found: list[Sheet] = []
        for number, metadata, state, seal in rows:
            what = f"session {session!r}, checkpoint {number}"
            fields = from_text(metadata, what=what)
            if not isinstance(fields, dict) or "plan" not in fields:
                raise Damaged(f"{what} is no checkpoint of ours")
            found.append(
                Sheet(number=number, metadata=fields, state=canonical(from_text(state, what=what)), seal=seal)
            )
        return found

    def _receipts(self, row: _Session) -> tuple[Receipt, ...]:
        rows = self._database.execute(
            "SELECT position, CAST(receipt AS TEXT), seal FROM receipts WHERE session_id = ? AND step_number = ? "
            "ORDER BY position",
            (row.id, row.head),
        )
        found: list[Receipt] = []
        before = row.head_seal
        for position, text, seal in rows:
            what = f"session {row.id!r}, receipt {position} after checkpoint {row.head}"
            fields = from_text(text, what=what)
            if position != len(found) + 1:
                raise Damaged(
                    f"session {row.id!r}: receipt {len(found) + 1} after checkpoint {row.head} was removed"
                )
            self._sealer.check({"receipt": fields, "previous": before}, seal, what=what)
            found.append(receipt_from(fields))
            before = seal
        return tuple(found)

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers of a session's checkpoints, the oldest first."""
        rows = self._read(
            "SELECT step_number FROM checkpoints WHERE session_id = ? ORDER BY step_number", session
        )
        return [row[0] for row in rows]

    def sessions(self, status: Status | None = None) -> Sequence[str]:
        """Return the names of sessions, of one status if it is given, sorted."""
        if status is None:
            return sorted(str(row[0]) for row in self._read("SELECT id FROM sessions"))
        return sorted(str(row[0]) for row in self._read("SELECT id FROM sessions WHERE status = ?", status))

    def _read(self, statement: str, *values: object) -> list[Row]:
        with self._shared.alone:
            return self._database.execute(statement, values)

    def _find(self, session: str, *, lock: bool = False) -> _Session | None:
        suffix = self._database.words["for_update"] if lock else ""
        rows = self._database.execute(f"SELECT {_COLUMNS} FROM sessions WHERE id = ? {suffix}", (session,))
        return _session_of(rows[0]) if rows else None

    def _row(self, session: str, *, lock: bool) -> _Session:
        row = self._find(session, lock=lock)
        if row is None:
            raise Damaged(f"session {session!r} is gone: its row was removed")
        return row

    def _held(self, lease: Lease) -> _Session:
        row = self._row(lease.session, lock=True)
        if row.fence != lease.fence:
            raise Fenced(fenced(lease, row.worker))
        return row
