"""Seals for session records: each covers the record's content, its position and the previous record's seal.

Without a key, a seal detects damage; with a key, it also detects edits by anyone who can write to the store. A seal
cannot detect that the whole store was restored from an older copy; for that, keep the newest seal outside the store, in
an `Anchor`.

head.json                       first and newest checkpoint with its seal
    checkpoints/cp-0001.json        metadata, state
    receipts/cp-0001-0001.json      a receipt written after that checkpoint

A row is JSON: `{"of": content, "seal": ...}`. A seal covers the row's name and content, and the content includes the
previous record's seal, so rows cannot be edited, moved, removed or added unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged
from statek_sim.store.codec import canonical, decoded, encoded, from_text
from statek_sim.values import JSON

SCHEMA: Final = 1
"""The schema version of a checkpoint's state; newer versions are rejected."""

SessionStatus = Literal["running", "paused", "completed", "failed"]
"""The status of a session, named as in the harness document, section 4."""

STATUSES: Final[tuple[SessionStatus, ...]] = ("running", "paused", "completed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The data saved by one commit.

    `progress` is in readable form: completed and open steps, tokens, cost. `results` are step names and outputs in
    order, for stores that write them as readable files; they are never read back, because the state contains them too.
    `at` is in seconds on the session's own clock.
    """

    point: str
    status: SessionStatus
    at: float
    state: Mapping[str, Any]
    progress: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A saved checkpoint. `number` counts from 1 in each session; `plan` is a hash of the session's plan."""

    session: str
    number: int
    plan: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Kept:
    """A session as stored: its newest checkpoint and the receipts that follow it."""

    checkpoint: Checkpoint
    receipts: tuple[Receipt, ...] = ()


def session_notes(session: str, number: int, entry: Entry) -> dict[str, str]:
    """Return a checkpoint's readable files, keyed by their path within the session's folder."""
    results = {
        f"results/step-{at:02}-output.md": f"# {name}\n\n{text}\n"
        for at, (name, text) in enumerate(entry.results, start=1)
    }
    return {**results, "progress.txt": _progress(session, number, entry)}


def _progress(session: str, number: int, entry: Entry) -> str:
    """Return the harness document's progress file; `Updated` is the checkpoint's time in seconds."""
    progress = entry.progress
    lines = {
        "Session": session,
        "Status": entry.status,
        "Step": number,
        "Current": progress.get("current", ""),
        "Completed": ", ".join(progress.get("completed", ())),
        "Remaining": ", ".join(progress.get("remaining", ())),
        "Tokens used": progress.get("tokens", 0),
        "Cost": f"${float(progress.get('cost', 0)):.4f}",
        "Updated": f"{entry.at:g} s",
    }
    return "\n".join(f"{name}: {_one_line(value)}" for name, value in lines.items()) + "\n"


def _one_line(value: object) -> str:
    """Return a value on a single line, so that it cannot imitate another line."""
    return " ".join(str(value).split())


@dataclass(frozen=True, slots=True)
class Sealer:
    """Creates and verifies seals; `key` is a secret of at least 16 bytes, or None."""

    key: bytes | None = None

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < 16:
            raise ValueError(f"expected a seal key of at least 16 bytes, got {len(self.key)}")

    def seal(self, content: JSON) -> str:
        """Return the seal for a JSON value. It depends on the order of keys."""
        data = canonical(content).encode("ascii")
        if self.key is None:
            return "sha256:" + hashlib.sha256(data).hexdigest()
        return "hmac-sha256:" + hmac.new(self.key, data, hashlib.sha256).hexdigest()

    def check(self, content: JSON, seal: object, *, what: str) -> None:
        """Raise `Damaged`, mentioning `what`, unless `seal` (of any type) is the seal for this content."""
        try:
            expected = self.seal(content)
        except ValueError:
            # NaN or infinity: Python's parser accepts them, but JSON has none and we never write them.
            expected = ""
        fits = isinstance(seal, str) and hmac.compare_digest(
            expected.encode(), seal.encode("utf-8", "replace")
        )
        if not expected or not fits:
            raise Damaged(
                f"{what} does not match what was saved: its seal is invalid. It was damaged, edited or "
                "saved with another key. Restore it from a backup, or remove the session and start again"
            )


class Anchor(Protocol):
    """Stores each session's newest seal where processes that write to the store cannot change it."""

    def read(self, session: str) -> tuple[int, str] | None:
        """Return the number and seal of the newest anchored checkpoint."""

    def write(self, session: str, number: int, seal: str) -> None:
        """Store the number and seal of a checkpoint that is already durable."""


class MemoryAnchor:
    """An anchor in memory, for tests and for processes that outlive their store."""

    def __init__(self) -> None:
        self._seals: dict[str, tuple[int, str]] = {}

    def read(self, session: str) -> tuple[int, str] | None:
        """Return the number and seal of the newest anchored checkpoint."""
        return self._seals.get(session)

    def write(self, session: str, number: int, seal: str) -> None:
        """Store the number and seal of a checkpoint that is already durable."""
        self._seals[session] = (number, seal)


def check_anchor(
    anchor: Anchor | None, session: str, newest: tuple[int, str] | None, before: str, *, where: str
) -> None:
    """Raise `Damaged`, with the prefix `where`, if a store is older than its anchor.

    The newest checkpoint may be one ahead of the anchor, if the process died before anchoring. `before` is the seal of
    the second newest checkpoint.
    """
    anchored = None if anchor is None else anchor.read(session)
    if anchored is None or anchored == newest:
        return
    if newest is not None and newest[0] == anchored[0] + 1 and before == anchored[1]:
        return
    has = "nothing" if newest is None else f"checkpoint {newest[0]}"
    raise Damaged(
        f"{where}: checkpoint {anchored[0]} was anchored, but the newest in the store is {has}; "
        "an older copy was restored, or this is a different store"
    )


HEAD: Final = "head.json"
"""The name of the row with the range of a session's checkpoints."""

CHECKPOINTS: Final = "checkpoints/"
RECEIPTS: Final = "receipts/"


def checkpoint_row(number: int) -> str:
    """Return a checkpoint's row name."""
    return f"{CHECKPOINTS}cp-{number:04}.json"


def receipt_row(number: int, position: int) -> str:
    """Return a receipt's row name; `position` counts from 1 after checkpoint `number`."""
    return f"{RECEIPTS}cp-{number:04}-{position:04}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The range of a session's checkpoints, `first` to `newest` (0: none yet), and the seal of the newest one."""

    plan: str
    first: int = 1
    newest: int = 0
    seal: str = ""

    @property
    def content(self) -> dict[str, JSON]:
        """The content of the `head.json` row."""
        return {"plan": self.plan, "first": self.first, "newest": self.newest, "seal": self.seal}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A stored checkpoint: its number, content and seal."""

    number: int
    content: Mapping[str, Any]
    seal: str


class SealedRows:
    """Writes and reads the rows of one session. Seals cover the session's name; errors start with `address`."""

    def __init__(self, address: str, session: str, sealer: Sealer) -> None:
        self._where = f"{address}: session {session!r}"
        self._session = session
        self._sealer = sealer

    def sealed(self, name: str, content: Mapping[str, JSON]) -> tuple[str, str]:
        """Return the row with this name and content, as text, and its seal."""
        seal = self._sealer.seal({"session": self._session, "row": name, "of": dict(content)})
        return canonical({"of": dict(content), "seal": seal}), seal

    def opened(self, name: str, row: str) -> tuple[dict[str, Any], str]:
        """Return a row's content and seal; raises `Damaged` if the row was changed."""
        what = f"{self._where}, {name}"
        document = from_text(row, what=what)
        if not isinstance(document, dict) or not isinstance(document.get("of"), dict):
            raise Damaged(f"{what} is not a session row")
        content, seal = document["of"], document.get("seal")
        schema = content.get("schema", SCHEMA)
        if isinstance(schema, int) and schema > SCHEMA:
            raise Damaged(
                f"{what} has schema {schema}, and this version reads up to {SCHEMA}; update this package"
            )
        self._sealer.check({"session": self._session, "row": name, "of": content}, seal, what=what)
        return content, str(seal)

    def as_it_is(self, name: str, row: str) -> tuple[dict[str, Any], bool]:
        """Return a row's content, and whether its seal is valid; raises `Damaged` if the row cannot be read."""
        try:
            return self.opened(name, row)[0], True
        except Damaged:
            document = from_text(row, what=f"{self._where}, {name}")
            if not isinstance(document, dict) or not isinstance(document.get("of"), dict):
                raise
            return document["of"], False

    def head(self, rows: Mapping[str, str], plan: str) -> Head:
        """Return a session's head, or a new one if there are no rows; raises `Damaged` if the head is missing."""
        if HEAD not in rows:
            if rows:
                raise Damaged(f"{self._where}: {HEAD} was removed")
            return Head(plan=plan)
        return Head(**self.opened(HEAD, rows[HEAD])[0])

    def checkpoints(self, rows: Mapping[str, str], head: Head) -> list[StoredCheckpoint]:
        """Return a session's checkpoints, oldest first; raises `Damaged` unless each follows the previous one."""
        expected = {checkpoint_row(number): number for number in range(head.first, head.newest + 1)}
        got = [name for name in rows if name.startswith(CHECKPOINTS)]
        if set(got) != set(expected):
            raise Damaged(
                f"{self._where} has the checkpoints {sorted(got)}, expected {sorted(expected)}: "
                "checkpoints were removed or added"
            )
        found = []
        for name, number in expected.items():
            content, seal = self.opened(name, rows[name])
            if content.get("schema") != SCHEMA or content.get("status") not in STATUSES:
                raise Damaged(f"{self._where}, {name} has an unknown version")
            found.append(StoredCheckpoint(number=number, content=content, seal=seal))
        for before, after in pairwise(found):
            if after.content["previous"] != before.seal:
                raise Damaged(
                    f"{self._where}: checkpoint {after.number} does not follow checkpoint {before.number}"
                )
        if found and found[-1].seal != head.seal:
            raise Damaged(f"{self._where}: checkpoint {head.newest} is not the latest one that was saved")
        return found

    def check_anchor(self, anchor: Anchor | None, found: Sequence[StoredCheckpoint]) -> None:
        """Raise `Damaged` if the store is older than its anchor."""
        newest = (found[-1].number, found[-1].seal) if found else None
        before = found[-1].content["previous"] if found else ""
        check_anchor(anchor, self._session, newest, before, where=self._where)

    def receipts(self, rows: Mapping[str, str], head: Head) -> tuple[list[Receipt], str]:
        """Return the receipts after the newest checkpoint, and the seal of the last record."""
        count = sum(name.startswith(RECEIPTS) for name in rows)
        found: list[Receipt] = []
        before = head.seal
        for position in range(1, count + 1):
            name = receipt_row(head.newest, position)
            if name not in rows:
                raise Damaged(f"{self._where}: receipt {position} after checkpoint {head.newest} was removed")
            content, seal = self.opened(name, rows[name])
            if content.get("previous") != before:
                raise Damaged(f"{self._where}: {name} does not follow the record before it")
            found.append(Receipt(**decoded(content["receipt"])))
            before = seal
        return found, before


def checkpoint_content(entry: Entry, *, plan: str, fence: int, previous: str) -> dict[str, JSON]:
    """Return the content of a checkpoint's row; `previous` is the previous checkpoint's seal."""
    return {
        "schema": SCHEMA,
        "plan": plan,
        "point": entry.point,
        "status": entry.status,
        "at": encoded(entry.at, path="at"),
        "fence": fence,
        "previous": previous,
        "progress": encoded(entry.progress, path="progress"),
        "state": encoded(entry.state),
    }


def receipt_content(receipt: Receipt, *, previous: str) -> dict[str, JSON]:
    """Return the content of a receipt's row; `previous` is the previous record's seal."""
    return {"receipt": encoded(asdict(receipt), path="receipt"), "previous": previous}


def checkpoint_of(session: str, stored: StoredCheckpoint) -> Checkpoint:
    """Return the `Checkpoint` in a verified row."""
    content = stored.content
    entry = Entry(
        point=content["point"],
        status=content["status"],
        at=decoded(content["at"]),
        state=decoded(content["state"]),
        progress=decoded(content["progress"]),
    )
    return Checkpoint(session=session, number=stored.number, plan=content["plan"], entry=entry)
