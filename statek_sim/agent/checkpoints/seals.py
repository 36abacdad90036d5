"""Seals: each record's seal covers its content, its place and the seal of the record before it.

Without a key a seal shows damage; with one, also edits by whoever can write to the store. What a seal cannot show is a
whole store put back as it was yesterday: for that the newest seal is kept somewhere else, in an `Anchor`.

    head.json                       first and newest checkpoint with its seal
    checkpoints/cp-0001.json        metadata, state
    receipts/cp-0001-0001.json      a receipt that came after that checkpoint

A row is JSON: `{"of": content, "seal": ...}`. A seal covers the row's name and content, and a content names the seal of
the record before it, so that rows cannot be edited, moved, removed or added unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged
from statek_sim.store.codec import canonical, decoded, encoded, from_text
from statek_sim.values import JSON

SCHEMA: Final = 1
"""The version of what a checkpoint's state looks like; a newer one is refused."""

SessionStatus = Literal["running", "paused", "completed", "failed"]
"""What a session is, in the words of the harness document section 4."""

STATUSES: Final[tuple[SessionStatus, ...]] = ("running", "paused", "completed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is saved at one commit.

    `progress` is what people read: which steps are done and open, tokens, cost. `results` are outputs of steps, by
    name, in their order, for stores that write them for people; the state has them too, and they are not read back.
    `at` is in seconds of the session's own clock.
    """

    point: str
    status: SessionStatus
    at: float
    state: Mapping[str, Any]
    progress: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One that was saved: `number` counts a session's from 1, `plan` is the hash of what the session is about."""

    session: str
    number: int
    plan: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Kept:
    """A session as a store has it: its newest checkpoint, and the receipts that came after it."""

    checkpoint: Checkpoint
    receipts: tuple[Receipt, ...] = ()


def session_notes(session: str, number: int, entry: Entry) -> dict[str, str]:
    """Return the texts for people by their paths in the session's folder."""
    results = {
        f"results/step-{at:02}-output.md": f"# {name}\n\n{text}\n"
        for at, (name, text) in enumerate(entry.results, start=1)
    }
    return {**results, "progress.txt": _progress(session, number, entry)}


def _progress(session: str, number: int, entry: Entry) -> str:
    """Return the lines of the document's progress file, with the session's status; `Updated` is its own second."""
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
    """Return a value that cannot pass for another line."""
    return " ".join(str(value).split())


@dataclass(frozen=True, slots=True)
class Sealer:
    """Makes and checks seals; `key` is a secret of at least 16 bytes, or None."""

    key: bytes | None = None

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < 16:
            raise ValueError(f"a key of seals has 16 bytes or more, not {len(self.key)}")

    def seal(self, content: JSON) -> str:
        """Return the seal of JSON, whose keys keep their order."""
        data = canonical(content).encode("ascii")
        if self.key is None:
            return "sha256:" + hashlib.sha256(data).hexdigest()
        return "hmac-sha256:" + hmac.new(self.key, data, hashlib.sha256).hexdigest()

    def check(self, content: JSON, seal: object, *, what: str) -> None:
        """Raise `Damaged` when `seal`, which a database may make anything of, is not the one of this content."""
        try:
            expected = self.seal(content)
        except ValueError:
            # NaN, or an infinite number: Python reads what no JSON holds and none of ours was written with.
            expected = ""
        fits = isinstance(seal, str) and hmac.compare_digest(
            expected.encode(), seal.encode("utf-8", "replace")
        )
        if not expected or not fits:
            raise Damaged(
                f"{what} is not what was saved: its seal does not fit; it was damaged or edited, or saved with another "
                "key. Restore it from a backup, or remove the session and begin it anew"
            )


class Anchor(Protocol):
    """Keeps the newest seal of each session where whoever can write to the store cannot."""

    def read(self, session: str) -> tuple[int, str] | None:
        """Return number and seal of the newest checkpoint that was anchored."""

    def write(self, session: str, number: int, seal: str) -> None:
        """Anchor a checkpoint that is durable."""


class MemoryAnchor:
    """An anchor in this process: enough for one that outlives its store's accidents, and for tests."""

    def __init__(self) -> None:
        self._seals: dict[str, tuple[int, str]] = {}

    def read(self, session: str) -> tuple[int, str] | None:
        """Return number and seal of the newest checkpoint that was anchored."""
        return self._seals.get(session)

    def write(self, session: str, number: int, seal: str) -> None:
        """Anchor a checkpoint that is durable."""
        self._seals[session] = (number, seal)


def check_anchor(
    anchor: Anchor | None, session: str, newest: tuple[int, str] | None, before: str, *, where: str
) -> None:
    """Raise `Damaged`, which begins with `where`, for a store that is older than its anchor.

    The newest checkpoint may be one ahead: the process died before it anchored it. `before` is the seal that it
    follows.
    """
    anchored = None if anchor is None else anchor.read(session)
    if anchored is None or anchored == newest:
        return
    if newest is not None and newest[0] == anchored[0] + 1 and before == anchored[1]:
        return
    has = "nothing" if newest is None else f"checkpoint {newest[0]}"
    raise Damaged(
        f"{where}: the store has {has} as the newest, and checkpoint {anchored[0]} was anchored; "
        "an older copy of the store was put back, or it is another one"
    )


HEAD: Final = "head.json"
"""The row that says which checkpoints a session has."""

CHECKPOINTS: Final = "checkpoints/"
RECEIPTS: Final = "receipts/"


def checkpoint_row(number: int) -> str:
    """Return the name of a checkpoint's row."""
    return f"{CHECKPOINTS}cp-{number:04}.json"


def receipt_row(number: int, position: int) -> str:
    """Return the name of the row of a receipt, `position` counts from 1 after checkpoint `number`."""
    return f"{RECEIPTS}cp-{number:04}-{position:04}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Which checkpoints a session has: numbers `first` to `newest` (0: none yet), and the newest one's seal."""

    plan: str
    first: int = 1
    newest: int = 0
    seal: str = ""

    @property
    def content(self) -> dict[str, JSON]:
        """What its row holds."""
        return {"plan": self.plan, "first": self.first, "newest": self.newest, "seal": self.seal}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """One checkpoint as it is stored: its number, its content, its seal."""

    number: int
    content: Mapping[str, Any]
    seal: str


class SealedRows:
    """Writes and reads the rows of one session, whose name every seal covers; `address` begins errors."""

    def __init__(self, address: str, session: str, sealer: Sealer) -> None:
        self._where = f"{address}: session {session!r}"
        self._session = session
        self._sealer = sealer

    def sealed(self, name: str, content: Mapping[str, JSON]) -> tuple[str, str]:
        """Return a row and its seal."""
        seal = self._sealer.seal({"session": self._session, "row": name, "of": dict(content)})
        return canonical({"of": dict(content), "seal": seal}), seal

    def opened(self, name: str, row: str) -> tuple[dict[str, Any], str]:
        """Return the content of a row and its seal; `Damaged` for a row that is not what was saved."""
        what = f"{self._where}, {name}"
        document = from_text(row, what=what)
        if not isinstance(document, dict) or not isinstance(document.get("of"), dict):
            raise Damaged(f"{what} is no row of a session")
        content, seal = document["of"], document.get("seal")
        schema = content.get("schema", SCHEMA)
        if isinstance(schema, int) and schema > SCHEMA:
            raise Damaged(
                f"{what} has schema {schema}, and this version reads up to {SCHEMA}; update this package"
            )
        self._sealer.check({"session": self._session, "row": name, "of": content}, seal, what=what)
        return content, str(seal)

    def head(self, rows: Mapping[str, str], plan: str) -> Head:
        """Return a session's head, that of a new one where it has no rows."""
        if HEAD not in rows:
            if rows:
                raise Damaged(f"{self._where}: {HEAD} was removed")
            return Head(plan=plan)
        return Head(**self.opened(HEAD, rows[HEAD])[0])

    def checkpoints(self, rows: Mapping[str, str], head: Head) -> list[StoredCheckpoint]:
        """Return a session's checkpoints, the oldest first; `Damaged` unless each follows the one before it."""
        expected = {checkpoint_row(number): number for number in range(head.first, head.newest + 1)}
        got = [name for name in rows if name.startswith(CHECKPOINTS)]
        if set(got) != set(expected):
            raise Damaged(
                f"{self._where} has the checkpoints {sorted(got)}, expected {sorted(expected)}: some were removed or "
                "added"
            )
        found = []
        for name, number in expected.items():
            content, seal = self.opened(name, rows[name])
            if content.get("schema") != SCHEMA or content.get("status") not in STATUSES:
                raise Damaged(f"{self._where}, {name} is of no version that was ever written")
            found.append(StoredCheckpoint(number=number, content=content, seal=seal))
        for before, after in pairwise(found):
            if after.content["previous"] != before.seal:
                raise Damaged(
                    f"{self._where}: checkpoint {after.number} does not follow checkpoint {before.number}"
                )
        if found and found[-1].seal != head.seal:
            raise Damaged(f"{self._where}: checkpoint {head.newest} is not the one that was saved last")
        return found

    def check_anchor(self, anchor: Anchor | None, found: Sequence[StoredCheckpoint]) -> None:
        """Raise `Damaged` for a store that is older than its anchor."""
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
    """Return what a checkpoint's row holds; `previous` is the seal of the checkpoint before it."""
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
    """Return what a receipt's row holds; `previous` is the seal of the record before it."""
    fields = {
        "job": receipt.job,
        "key": receipt.key,
        "at": receipt.at,
        "status": receipt.status,
        "text": receipt.text,
    }
    return {"receipt": encoded(fields, path="receipt"), "previous": previous}


def checkpoint_of(session: str, stored: StoredCheckpoint) -> Checkpoint:
    """Return a stored checkpoint that was checked, as values."""
    content = stored.content
    entry = Entry(
        point=content["point"],
        status=content["status"],
        at=decoded(content["at"]),
        state=decoded(content["state"]),
        progress=decoded(content["progress"]),
    )
    return Checkpoint(session=session, number=stored.number, plan=content["plan"], entry=entry)
