"""The seam of stores: where sessions are kept between processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar
from urllib.parse import quote

from statek_sim.agent.checkpoints.records import Entry, Kept, Lease, Status
from statek_sim.agent.effects import Receipt
from statek_sim.errors import BadInput, Damaged

T = TypeVar("T")

_LONGEST: Final = 200


class CheckpointStore(Protocol):
    """Keeps sessions. What `save` and `note` have returned from survives any crash; nothing else is promised.

    Every session belongs to one worker at a time: its newest `claim` fences all earlier ones.
    """

    def claim(self, session: str, *, worker: str, plan: str, kind: str = "agent") -> Lease:
        """Take a session, which is made when it is new.

        Raises `Held` while another worker's lease runs, and `OtherPlan` when it is about something else. A worker may
        claim its own session again at once.
        """

    def claim_next(self, *, worker: str) -> Lease | None:
        """Take the session that waits longest of those that are running and nobody's, None when there is none."""

    def save(self, lease: Lease, entry: Entry) -> int:
        """Make an entry durable and return its number; raises `Fenced`."""

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Make a receipt durable that came after the newest checkpoint; raises `Fenced`."""

    def renew(self, lease: Lease) -> None:
        """Begin a lease anew, for a worker that is alive and has nothing to save yet; raises `Fenced`."""

    def release(self, lease: Lease) -> None:
        """Give a session back, so that anybody may claim it at once; nothing happens to one that was taken over."""

    def latest(self, session: str) -> Kept | None:
        """Return a session's newest checkpoint, None where there is none yet; raises `Damaged`.

        Anybody may ask, also while the session's worker saves and prunes.
        """

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers of a session's checkpoints, the oldest first."""

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove all but the newest `keep` (1 or more) checkpoints; return how many."""

    def sessions(self, status: Status | None = None) -> Sequence[str]:
        """Return the names of sessions, of one status if it is given, sorted."""

    def close(self) -> None:
        """Let go of files and connections."""


def steadily(read: Callable[[], T], version: Callable[[], object]) -> T:
    """Read what its worker may be writing: what looks damaged and is another `version` by then is read once more."""
    seen: object = object()
    while True:
        try:
            return read()
        except Damaged:
            now = version()
            if now == seen:
                raise
            seen = now


def check_keep(keep: int) -> None:
    """Raise `BadInput` for a number of checkpoints that would not leave the newest one."""
    if keep < 1:
        raise BadInput(
            f"prune keeps 1 checkpoint or more, not {keep}: the newest one is what a run resumes from"
        )


def check_name(session: str) -> None:
    """Raise `BadInput` for what cannot name a session."""
    if not session or len(quote(session, safe="")) > _LONGEST or not session.isprintable():
        raise BadInput(
            f"a session's name has printable characters, and at most {_LONGEST} of them as they stand in an address; "
            f"got {session!r}"
        )
