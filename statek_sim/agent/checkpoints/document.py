"""The store of 002 §4 as its code is written: to compare with, and to show what it loses."""

from __future__ import annotations

import json
from collections.abc import Sequence

from statek_sim.agent.checkpoints.codec import decoded, encoded
from statek_sim.agent.checkpoints.disk import Disk
from statek_sim.agent.checkpoints.progress_text import progress_text
from statek_sim.agent.checkpoints.records import Checkpoint, Entry, Kept, Lease, Status
from statek_sim.agent.effects import Receipt


class DocumentStore:
    """`CheckpointManager`: plain writes, names sorted as text, anything that ends with `.json`, no receipts.

    The session is not in the path, nobody is fenced, and a session is about nothing in particular. `json.loads` errors
    go to the caller, as `JSON.parse`'s do.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def claim(self, session: str, *, worker: str, plan: str, kind: str = "agent") -> Lease:
        """Let anybody in."""
        return Lease(session=session, fence=1, worker=worker)

    def claim_next(self, *, worker: str) -> Lease | None:
        """Find nothing: the document has no queue."""
        return None

    def renew(self, lease: Lease) -> None:
        """Do nothing: nobody is kept out."""

    def release(self, lease: Lease) -> None:
        """Do nothing."""

    def save(self, lease: Lease, entry: Entry) -> int:
        """Write two files, one after the other; the number is one more than the newest by name."""
        for folder in ("", "checkpoints"):
            self._disk.make_folder(folder)
        names = self._listed()
        number = int(names[-1].removeprefix("cp-")) + 1 if names else 1
        fields = {"stepNumber": number, "point": entry.point, "status": entry.status, "at": entry.at}
        content = json.dumps(fields | {"state": encoded(entry.state)}, indent=2)
        self._disk.write(f"checkpoints/cp-{number:04}.json", content.encode())
        self._disk.write("progress.txt", progress_text(lease.session, number, entry).encode())
        return number

    def note(self, lease: Lease, receipt: Receipt) -> None:
        """Do nothing: the effect comes before the save."""

    def latest(self, session: str) -> Kept | None:
        """Return the newest by name, of whatever session."""
        names = self._listed()
        if not names:
            return None
        fields = json.loads(self._disk.read(f"checkpoints/{names[-1]}.json") or b"")
        entry = Entry(
            point=fields["point"], status=fields["status"], at=fields["at"], state=decoded(fields["state"])
        )
        return Kept(Checkpoint(session=session, number=fields["stepNumber"], plan="", entry=entry))

    def _listed(self) -> list[str]:
        names = [name for name in self._disk.names("checkpoints") if name.endswith(".json")]
        return sorted(name.replace(".json", "") for name in names)

    def numbers(self, session: str) -> Sequence[int]:
        """Return the numbers in the order of their names."""
        return [int(name.removeprefix("cp-")) for name in self._listed()]

    def prune(self, lease: Lease, keep: int) -> int:
        """Remove `all.slice(0, -keep)`: nothing for 0, and the oldest for a negative number."""
        names = self._listed()
        gone = names[: len(names) - keep if keep > 0 else -keep if keep < 0 else 0]
        for name in gone:
            self._disk.remove(f"checkpoints/{name}.json")
        return len(gone)

    def sessions(self, status: Status | None = None) -> Sequence[str]:
        """Return none: the document's files do not know whose they are."""
        return []

    def close(self) -> None:
        """Do nothing."""
