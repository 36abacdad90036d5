"""Stored agent sessions: each is a sequence of checkpoints, with the receipts since the newest one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from hashlib import sha256
from typing import Any

from statek_sim.agent.checkpoints.seals import (
    HEAD,
    Anchor,
    Entry,
    Head,
    Kept,
    SealedRows,
    Sealer,
    SessionStatus,
    check_anchor,
    checkpoint_content,
    checkpoint_of,
    checkpoint_row,
    receipt_content,
    receipt_row,
    session_notes,
)
from statek_sim.agent.effects import CommitPoint, Receipt, Snapshot
from statek_sim.errors import BadInput, BadStore, Damaged, NoSuchRun, OtherPlan
from statek_sim.store.codec import canonical, encoded
from statek_sim.store.files import FileStore
from statek_sim.store.protocol import Changes, Lease, Status, Store, Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """The last committed state of a session that this process has open.

    `before` is the seal of the last record: the newest checkpoint, or the last of the `receipts` after it.
    """

    lease: Lease
    head: Head
    status: Status
    receipts: int
    before: str


class SessionStore:
    """Saves and loads agent sessions in any kind of store; `close` closes the store.

    `key` is a secret of at least 16 bytes. Without a key, seals detect damage; with a key, they also detect edits by
    anyone who can write to the store. An `anchor` also detects when an older copy of the store was restored. Every
    session belongs to one worker at a time: the newest `claim` fences all earlier ones.
    """

    def __init__(self, store: Store, *, key: bytes | None = None, anchor: Anchor | None = None) -> None:
        self._store = store
        self._sealer = Sealer(key)
        self._anchor = anchor
        self._open: dict[str, _Open] = {}

    @property
    def lease_seconds(self) -> float:
        """The duration of a lease in seconds."""
        return self._store.lease_seconds

    def close(self) -> None:
        """Close the store's files and connections."""
        self._store.close()

    # -- leases ------------------------------------------------------------------------------------------------

    def claim(self, session: str, *, worker: str, plan: str) -> Lease:
        """Claim a session, creating it if it is new; raises `Held`, or `OtherPlan` if its plan is different.

        A worker may reclaim its own session at any time.
        """
        try:
            saved = _plan_of(self._store.load(session))
        except NoSuchRun:
            saved = plan
        if saved != plan:
            raise OtherPlan(
                f"{self._store.address}: session {session!r} was saved for plan {saved}, but the "
                f"plan to resume is {plan}; use a new session for a different task, or remove this session"
            )
        return self._store.claim(session, worker=worker, kind="session", about={"plan": plan})

    def claim_next(self, *, worker: str) -> Lease | None:
        """Claim the unfinished session that has waited longest for a worker; return None if no session is waiting."""
        return self._store.claim_next(worker=worker, kind="session")

    def renew(self, lease: Lease) -> None:
        """Extend a lease for a worker that has nothing to save yet; raises `Fenced` if another worker took over."""
        self._store.renew(lease)

    def release(self, lease: Lease) -> None:
        """Release a session, so that any worker may claim it; do nothing if another worker has taken over."""
        self._open.pop(lease.run, None)
        self._store.release(lease)

    # -- saving ------------------------------------------------------------------------------------------------

    def save(self, lease: Lease, entry: Entry) -> int:
        """Save an entry durably and return its number; raises `Fenced` if another worker has taken the session."""
        session, opened = lease.run, self._opened(lease)
        head, number = opened.head, opened.head.newest + 1
        rows = self._rows(session)
        content = checkpoint_content(entry, plan=head.plan, fence=lease.fence, previous=head.seal)
        row, seal = rows.sealed(checkpoint_row(number), content)
        new = replace(head, newest=number, seal=seal)
        changes = Changes(
            rows={checkpoint_row(number): row, HEAD: rows.sealed(HEAD, new.content)[0]},
            gone=[receipt_row(head.newest, position + 1) for position in range(opened.receipts)],
            status=entry.status,
            notes=session_notes(session, number, entry),
        )
        self._commit(opened, changes, head=new, receipts=0, before=seal)
        if self._anchor is not None:
            self._anchor.write(session, number, seal)
        return number

    def save_again(self, lease: Lease, number: int) -> int:
        """Save an earlier checkpoint as the newest, to resume from it; return its new number. Raises `Fenced`.

        Raises `BadInput` if that checkpoint is no longer stored. Calls made after it may be repeated.
        """
        stored, rows = self._store.load(lease.run), self._rows(lease.run)
        found = rows.checkpoints(stored.rows, rows.head(stored.rows, _plan_of(stored)))
        chosen = next((one for one in found if one.number == number), None)
        if chosen is None:
            kept = f"{found[0].number} to {found[-1].number}" if found else "none"
            raise BadInput(
                f"{self._store.address}: session {lease.run!r} has no checkpoint {number}; it has {kept}"
            )
        entry = checkpoint_of(lease.run, chosen).entry
        return self.save(lease, replace(entry, results=_results(entry.state.get("calls", ()))))

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Save a receipt durably after the newest checkpoint; raises `Fenced` if another worker has taken over."""
        opened = self._opened(lease)
        name = receipt_row(opened.head.newest, opened.receipts + 1)
        row, seal = self._rows(lease.run).sealed(name, receipt_content(receipt, previous=opened.before))
        changes = Changes(rows={name: row}, status=opened.status)
        self._commit(opened, changes, head=opened.head, receipts=opened.receipts + 1, before=seal)

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove all but the newest `keep` (1 or more) checkpoints; return how many were removed."""
        check_keep(keep)
        opened = self._opened(lease)
        head = opened.head
        first = max(head.first, head.newest - keep + 1)
        gone = [checkpoint_row(number) for number in range(head.first, first)]
        if gone:
            new = replace(head, first=first)
            row = self._rows(lease.run).sealed(HEAD, new.content)[0]
            changes = Changes(rows={HEAD: row}, gone=gone, status=opened.status)
            self._commit(opened, changes, head=new, receipts=opened.receipts, before=opened.before)
        return len(gone)

    def _opened(self, lease: Lease) -> _Open:
        """Return a session's last committed state, loading it from the store if this process has not."""
        known = self._open.get(lease.run)
        if known is not None and known.lease.fence == lease.fence:
            return known
        stored, rows = self._store.load(lease.run), self._rows(lease.run)
        head = rows.head(stored.rows, _plan_of(stored))
        receipts, before = rows.receipts(stored.rows, head)
        return _Open(
            lease=replace(lease, revision=stored.revision),
            head=head,
            status=stored.status,
            receipts=len(receipts),
            before=before,
        )

    def _commit(self, opened: _Open, changes: Changes, *, head: Head, receipts: int, before: str) -> None:
        # After a failed commit the next one reads from the store.
        self._open.pop(opened.lease.run, None)
        lease = self._store.commit(opened.lease, changes)
        self._open[lease.run] = _Open(
            lease=lease, head=head, status=changes.status, receipts=receipts, before=before
        )

    # -- reading -----------------------------------------------------------------------------------------------

    def latest(self, session: str) -> Kept | None:
        """Return a session's newest checkpoint, or None if there is none; raises `Damaged`.

        Any process may call this, even while the session's worker is saving or pruning.
        """
        seen = -1
        while True:
            try:
                stored = self._store.load(session)
            except NoSuchRun:
                stored = None
            try:
                return self._checked(session, stored)
            except Damaged:
                # Its worker may have saved and anchored in the meantime.
                revision = 0 if stored is None else stored.revision
                if revision == seen:
                    raise
                seen = revision

    def _checked(self, session: str, stored: Stored | None) -> Kept | None:
        rows = self._rows(session)
        if stored is None:
            rows.check_anchor(self._anchor, ())
            return None
        head = rows.head(stored.rows, _plan_of(stored))
        found = rows.checkpoints(stored.rows, head)
        rows.check_anchor(self._anchor, found)
        if head.plan != _plan_of(stored):
            raise Damaged(
                f"{self._store.address}: session {session!r}: its state has plan {_plan_of(stored)!r}, "
                f"but its head has {head.plan!r}: the session was changed"
            )
        receipts, _ = rows.receipts(stored.rows, head)
        return Kept(checkpoint_of(session, found[-1]), tuple(receipts)) if found else None

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers of a session's checkpoints, oldest first."""
        try:
            stored = self._store.load(session)
        except NoSuchRun:
            return ()
        head = self._rows(session).head(stored.rows, _plan_of(stored))
        return range(head.first, head.newest + 1)

    def sessions(self, status: SessionStatus | None = None) -> Sequence[str]:
        """Return the sorted names of sessions, restricted to `status` if given.

        Damaged sessions have no status, so they are listed only if `status` is None.
        """
        return sorted(
            listed.run for listed in self._store.runs("session") if status is None or listed.status == status
        )

    def _rows(self, session: str) -> SealedRows:
        return SealedRows(self._store.address, session, self._sealer)


def check_keep(keep: int) -> None:
    """Raise `BadInput` unless at least one checkpoint is kept."""
    if keep < 1:
        raise BadInput(
            f"prune must keep at least 1 checkpoint, got {keep}: a run resumes from the newest one"
        )


def _plan_of(stored: Stored) -> str:
    return str(stored.about.get("plan", ""))


def accept_edits(store: SessionStore, session: str, *, worker: str, agrees: Callable[[str], bool]) -> bool:
    """Reseal checkpoints that were edited by hand, if `agrees` returns True for the changes; return whether it did.

    The changes are a unified diff between each edited checkpoint and the last intact one before it, because the
    original content is gone. If nothing was edited, `agrees` is not called. Raises `Held`, and `Damaged` for a session
    that cannot be resumed.
    """
    kept = store._store
    lease = kept.claim(session, worker=worker, kind="session")
    try:
        stored = kept.load_edited(session) if isinstance(kept, FileStore) else kept.load(session)
        changes, seal, diff = _sealed_again(store, stored)
        if not changes or not agrees(diff):
            return False
        kept.commit(replace(lease, revision=stored.revision), changes)
        if store._anchor is not None:
            store._anchor.write(session, store.numbers(session)[-1], seal)
        return True
    finally:
        kept.release(lease)


def _sealed_again(store: SessionStore, stored: Stored) -> tuple[Changes, str, str]:
    """Return the changes that seal edited checkpoints and all later ones, along with the newest seal and the diff."""
    rows = store._rows(stored.run)
    head = rows.head(stored.rows, _plan_of(stored))
    check_anchor(store._anchor, stored.run, (head.newest, head.seal), "", where=store._store.address)
    receipts, _ = rows.receipts(stored.rows, head)
    changed: dict[str, str] = {}
    diff, intact, seal = "", {}, head.seal
    for number in range(head.first, head.newest + 1):
        name = checkpoint_row(number)
        content, is_intact = rows.as_it_is(name, stored.rows[name])
        if is_intact and not changed:
            intact = content
            continue
        diff += "" if is_intact else _diff(intact, content, number)
        changed[name], seal = rows.sealed(name, {**content, "previous": seal} if changed else content)
    if not changed:
        return Changes(), seal, diff
    new, before = replace(head, seal=seal), seal
    for position, receipt in enumerate(receipts, 1):
        name = receipt_row(head.newest, position)
        changed[name], before = rows.sealed(name, receipt_content(receipt, previous=before))
    changed[HEAD] = rows.sealed(HEAD, new.content)[0]
    newest = checkpoint_of(stored.run, rows.checkpoints({**stored.rows, **changed}, new)[-1])
    return Changes(rows=changed, status=newest.entry.status), seal, diff


def _diff(before: Mapping[str, Any], after: Mapping[str, Any], number: int) -> str:
    old, new = (
        json.dumps({**one, "previous": None}, indent=2, ensure_ascii=False).splitlines(keepends=True)
        for one in (before, after)
    )
    return "".join(unified_diff(old, new, "the last intact checkpoint", f"checkpoint {number}, edited"))


KEEP = 5
"""The default number of checkpoints to keep per session; a run may also be resumed from one before the newest."""


def plan_hash(*what: object) -> str:
    """Return a hash of the values that define a session's plan: its task, agent and steps."""
    return sha256(canonical(encoded(list(what), path="plan")).encode("ascii")).hexdigest()[:16]


class Keeper:
    """Claims a session for one worker, and saves its run's commits and receipts.

    `kept` is the session's content when it was claimed, or None for a new session. `resume` is the number of an earlier
    checkpoint to continue the run from. Raises the errors of `claim`, `save_again` and `latest`. Under asyncio, `save`
    and `note` block the event loop while the store writes.
    """

    def __init__(
        self,
        store: SessionStore,
        session: str,
        *,
        worker: str,
        plan: str,
        keep: int = KEEP,
        resume: int | None = None,
    ) -> None:
        check_keep(keep)
        self._store = store
        self._keep = keep
        self.plan = plan
        self.lease = store.claim(session, worker=worker, plan=plan)
        if resume is not None:
            store.save_again(self.lease, resume)
        self.kept: Kept | None = store.latest(session)

    def committed(self, snapshot: Snapshot) -> None:
        """Save a snapshot durably."""
        number = self._store.save(self.lease, entry_of(snapshot))
        if number % self._keep == 0:
            self._store.prune(self.lease, self._keep)

    def receipted(self, receipt: Receipt) -> None:
        """Save a receipt durably."""
        self._store.note(self.lease, receipt)

    async def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot durably, for `AsyncDriver(committed=...)`."""
        self.committed(snapshot)

    async def note(self, receipt: Receipt) -> None:
        """Save a receipt durably, for `AsyncDriver(receipted=...)`."""
        self.receipted(receipt)

    def renew(self) -> None:
        """Renew the lease; raises `Fenced` if another worker has taken the session.

        `async_driver.holding` calls this while a run works, and `Simulation` in virtual time.
        """
        self._store.renew(self.lease)

    @property
    def every(self) -> float:
        """Seconds between renewals: a third of a lease, so that a renewal may be late."""
        return self._store.lease_seconds / 3

    def release(self) -> None:
        """Release the session, so that any worker may claim it."""
        self._store.release(self.lease)


def entry_of(snapshot: Snapshot) -> Entry:
    """Return the entry to save for a snapshot: the state, and the progress in readable form."""
    remaining = list(snapshot.steps_open)
    return Entry(
        point=snapshot.point.value,
        status=status_of(snapshot),
        at=snapshot.seconds,
        state=snapshot.state,
        progress={
            "current": remaining[0] if remaining else "",
            "completed": list(snapshot.steps_done),
            "remaining": remaining,
            "tokens": snapshot.tokens,
            "cost": snapshot.cost,
        },
        results=_results(snapshot.state["calls"]),
    )


def _results(calls: Any) -> Sequence[tuple[str, str]]:
    found: list[Mapping[str, str]] = [call for call in calls if "result" in call]
    return [(f"{call['name']}({call['arguments']})", call["result"]) for call in found]


def status_of(snapshot: Snapshot) -> SessionStatus:
    """Return a session's status at a commit, in the harness document's terms."""
    if snapshot.point is CommitPoint.SUSPENDED:
        return "paused"
    if snapshot.point is not CommitPoint.ENDED:
        return "running"
    return "completed" if snapshot.stop == "final" else "failed"


def saved_run(kept: Kept) -> dict[str, Any]:
    """Return a stored session as arguments for `resume.resumed`; raises `BadStore` for another kind of session."""
    entry = kept.checkpoint.entry
    try:
        point = CommitPoint(entry.point)
    except ValueError:
        session = kept.checkpoint.session
        raise BadStore(
            f"session {session!r} does not belong to an agent: its last commit is at {entry.point!r}, a "
            "point that agents do not have"
        ) from None
    return {"state": entry.state, "point": point, "committed": entry.at, "receipts": kept.receipts}
