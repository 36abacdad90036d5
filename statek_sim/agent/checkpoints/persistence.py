"""One session of a store, as drivers use it: they give it every snapshot and receipt, and it holds the lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from statek_sim.agent.checkpoints.records import Entry, Kept, SessionStatus
from statek_sim.agent.checkpoints.sessions import SessionStore, check_keep
from statek_sim.agent.effects import CommitPoint, Receipt, Snapshot
from statek_sim.errors import BadStore
from statek_sim.store.codec import canonical, encoded

KEEP = 5
"""Checkpoints of a session that stay; only the newest is needed, the others are for people."""


def plan_hash(*what: object) -> str:
    """Return the hash of what a session is about: its task, its agent, the steps of its plan."""
    return sha256(canonical(encoded(list(what), path="plan")).encode("ascii")).hexdigest()[:16]


class Keeper:
    """Holds one session for one worker.

    `kept` is what the store had of it when the session was claimed, None when it is new. Raises what `claim` and
    `latest` raise. Under asyncio `save` and `note` take the event loop's time while the store writes.
    """

    def __init__(
        self, store: SessionStore, session: str, *, worker: str, plan: str, keep: int = KEEP
    ) -> None:
        check_keep(keep)
        self._store = store
        self._keep = keep
        self.plan = plan
        self.lease = store.claim(session, worker=worker, plan=plan)
        self.kept: Kept | None = store.latest(session)

    def committed(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable."""
        number = self._store.save(self.lease, entry_of(snapshot))
        if number % self._keep == 0:
            self._store.prune(self.lease, self._keep)

    def receipted(self, receipt: Receipt) -> None:
        """Make a receipt durable."""
        self._store.note(self.lease, receipt)

    async def save(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, for `AsyncDriver(committed=...)`."""
        self.committed(snapshot)

    async def note(self, receipt: Receipt) -> None:
        """Make a receipt durable, for `AsyncDriver(receipted=...)`."""
        self.receipted(receipt)

    def renew(self) -> None:
        """Say that this worker is alive; raises `Fenced` when the session was taken from it.

        `asynchronous.holding` does so beside a run, a `Simulation` in virtual time.
        """
        self._store.renew(self.lease)

    @property
    def every(self) -> float:
        """Seconds between two renewals: a third of a lease, so that one may be late."""
        return self._store.lease_seconds / 3

    def release(self) -> None:
        """Give the session back."""
        self._store.release(self.lease)


def entry_of(snapshot: Snapshot) -> Entry:
    """Return a snapshot as it is saved: the state, and what people read of it."""
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
    """Return what a session is at a commit, in the document's words."""
    if snapshot.point is CommitPoint.SUSPENDED:
        return "paused"
    if snapshot.point is not CommitPoint.ENDED:
        return "running"
    return "completed" if snapshot.stop == "final" else "failed"


def saved_run(kept: Kept) -> dict[str, Any]:
    """Return a kept session as the arguments of `resume.resumed`; `BadStore` for one of another kind."""
    entry = kept.checkpoint.entry
    try:
        point = CommitPoint(entry.point)
    except ValueError:
        session = kept.checkpoint.session
        raise BadStore(f"session {session!r} is no run of an agent: its point is {entry.point!r}") from None
    return {"state": entry.state, "point": point, "committed": entry.at, "receipts": kept.receipts}
