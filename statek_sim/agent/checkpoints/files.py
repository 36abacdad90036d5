"""Sessions as files, laid out as 002 §4 does: `cat progress.txt` says how far a session is.

    SESSION/session.json            whose it is, what it is about, which checkpoint is the newest
    SESSION/progress.txt            for people; derived
    SESSION/checkpoints/cp-0001.json
    SESSION/receipts/cp-0001.jsonl  what came of calls and questions after that checkpoint
    SESSION/results/step-01-output.md   outputs of steps; derived

Every file but the derived ones is put in its place at once and survives a loss of power.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from statek_sim.agent.checkpoints.disk import Disk
from statek_sim.agent.checkpoints.records import Entry, Kept, Lease, Status
from statek_sim.agent.checkpoints.refusals import fenced, held, other_plan
from statek_sim.agent.checkpoints.sealed import check_chain, checkpoint_of, sheet_of
from statek_sim.agent.checkpoints.session_files import SessionFiles
from statek_sim.agent.checkpoints.store import check_keep, check_name, steadily
from statek_sim.agent.checkpoints.terms import StoreTerms, Terms
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged, Fenced, Held, OtherPlan


class FileStore:
    """A `CheckpointStore` in a folder; `terms` are those of every store: see `terms.StoreTerms`."""

    def __init__(self, disk: Disk, **terms: Unpack[StoreTerms]) -> None:
        self._terms = Terms(**terms)
        self._sealer = self._terms.sealer
        self._files = SessionFiles(disk, self._sealer)

    # -- whose a session is ------------------------------------------------------------------------------------

    def claim(self, session: str, *, worker: str, plan: str, kind: str = "agent") -> Lease:
        """Take a session; raises `Held` and `OtherPlan`."""
        check_name(session)
        self._files.make(session)
        with self._files.locked(session):
            record = self._files.record(session)
            if record is None:
                record = {
                    "kind": kind,
                    "plan": plan,
                    "status": "running",
                    "fence": 0,
                    "worker": "",
                    "until": 0.0,
                }
                record |= {
                    "session": session,
                    "first": 1,
                    "head": 0,
                    "seal": "",
                    "began": self._terms.clock(),
                }
            elif record["plan"] != plan:
                raise OtherPlan(other_plan(session, record["plan"], plan))
            return self._take(session, record, worker)

    def _take(self, session: str, record: dict[str, Any], worker: str) -> Lease:
        left = record["until"] - self._terms.clock()
        if record["worker"] not in ("", worker) and left > 0:
            raise Held(held(session, record["worker"], left))
        record = self._files.knowing_newest(session, record)
        record |= {"fence": record["fence"] + 1, "worker": worker, "until": self._terms.until()}
        self._files.put_record(session, record)
        return Lease(session=session, fence=record["fence"], worker=worker, seconds=self._terms.lease)

    def claim_next(self, *, worker: str) -> Lease | None:
        """Take the session that waits longest of those that are running and nobody's, None when there is none.

        A session whose session.json is damaged is passed over: `latest` says what is wrong with it.
        """
        waiting = [
            record for _, record in self._files.records() if record is not None and self._is_free(record)
        ]
        for record in sorted(waiting, key=lambda record: (record["until"], record["session"])):
            session = str(record["session"])
            try:
                with self._files.locked(session):
                    now = self._files.record(session)
                    if now is not None and self._is_free(now):
                        return self._take(session, now, worker)
            except (Held, Damaged):
                # Its worker is frozen in the middle of a write, or its newest checkpoint is damaged: that keeps nobody
                # from the others.
                continue
        return None

    def _is_free(self, record: dict[str, Any]) -> bool:
        nobodys = record["worker"] == "" or record["until"] <= self._terms.clock()
        return bool(record["status"] == "running" and nobodys)

    def renew(self, lease: Lease) -> None:
        """Begin a lease anew, for a worker that has nothing to save yet; raises `Fenced`."""
        with self._files.locked(lease.session):
            record = self._held(lease)
            self._files.put_record(lease.session, record | {"until": self._terms.until()})

    def release(self, lease: Lease) -> None:
        """Give a session back; nothing happens to one that was taken over."""
        with self._files.locked(lease.session):
            record = self._files.record(lease.session)
            if record is not None and record["fence"] == lease.fence:
                self._files.put_record(lease.session, record | {"worker": "", "until": self._terms.clock()})

    # -- saving ------------------------------------------------------------------------------------------------

    def save(self, lease: Lease, entry: Entry) -> int:
        """Make an entry durable and return its number; raises `Fenced`."""
        session = lease.session
        with self._files.locked(session):
            record = self._held(lease)
            sheet = sheet_of(
                session,
                record["head"] + 1,
                entry,
                plan=record["plan"],
                fence=lease.fence,
                previous=record["seal"],
                sealer=self._sealer,
            )
            self._files.put_sheet(session, sheet)
            record |= {"head": sheet.number, "seal": sheet.seal, "status": entry.status}
            self._files.put_record(session, record | {"until": self._terms.until()})
            self._files.tell_people(session, sheet.number, entry)
        self._terms.anchored(session, sheet.number, sheet.seal)
        return sheet.number

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Make a receipt durable that came after the newest checkpoint; raises `Fenced`."""
        session = lease.session
        with self._files.locked(session):
            record = self._held(lease)
            self._files.add_receipt(session, record["head"], record["seal"], receipt)

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove all but the newest `keep` (1 or more) checkpoints; return how many."""
        check_keep(keep)
        session = lease.session
        with self._files.locked(session):
            record = self._held(lease)
            first = max(record["first"], record["head"] - keep + 1)
            self._files.put_record(session, record | {"first": first})
            gone = [number for number in self._files.numbers(session) if number < first]
            for number in gone:
                self._files.remove(session, number)
        return len(gone)

    # -- reading -----------------------------------------------------------------------------------------------

    def latest(self, session: str) -> Kept | None:
        """Return a session's newest checkpoint, None where there is none yet; raises `Damaged`."""
        check_name(session)
        return steadily(lambda: self._latest(session), lambda: self._files.record(session))

    def _latest(self, session: str) -> Kept | None:
        record = self._files.record(session)
        if record is None:
            if self._files.numbers(session):
                raise Damaged(f"session {session!r} has checkpoints and no session.json: it was removed")
            check_chain(session, (), self._sealer, self._terms.anchor, first=1, head=0, seal="")
            return None
        record = self._files.knowing_newest(session, record)
        head, seal = record["head"], record["seal"]
        numbers = [number for number in self._files.numbers(session) if number >= record["first"]]
        sheets = [sheet for number in numbers if (sheet := self._files.sheet(session, number)) is not None]
        check_chain(
            session, sheets, self._sealer, self._terms.anchor, first=record["first"], head=head, seal=seal
        )
        if not sheets:
            return None
        known, _ = self._files.receipts(session, head, seal)
        return Kept(checkpoint_of(session, sheets[-1]), tuple(receipt for _, _, receipt in known))

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers of a session's checkpoints, the oldest first."""
        record = self._files.record(session)
        return (
            []
            if record is None
            else [number for number in self._files.numbers(session) if number >= record["first"]]
        )

    def sessions(self, status: Status | None = None) -> Sequence[str]:
        """Return the names of sessions, of one status if it is given, sorted.

        Those whose session.json is damaged have no status, and are there when none is given.
        """
        return sorted(
            session
            for session, record in self._files.records()
            if status is None or (record is not None and record["status"] == status)
        )

    def close(self) -> None:
        """Do nothing: no file is held open."""

    # -- who may write -----------------------------------------------------------------------------------------

    def _held(self, lease: Lease) -> dict[str, Any]:
        """Return what session.json says of a session that is still this lease's; it knows the newest checkpoint."""
        record = self._files.record(lease.session)
        if record is None:
            raise Damaged(f"session {lease.session!r} is gone: its session.json was removed")
        if record["fence"] != lease.fence:
            raise Fenced(fenced(lease, record["worker"]))
        known = self._files.knowing_newest(lease.session, record)
        if known != record:
            self._files.put_record(lease.session, known)
        return known
