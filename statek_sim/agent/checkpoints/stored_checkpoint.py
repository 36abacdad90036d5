"""Checkpoints and receipts as sealed rows of a store, and the checks when they are read.

    head.json                       first and newest checkpoint with its seal
    checkpoints/cp-0001.json        metadata, state
    receipts/cp-0001-0001.json      a receipt that came after that checkpoint

A row is JSON: `{"of": content, "seal": ...}`. A seal covers the row's name and content, and a content names the seal of
the record before it, so that rows cannot be edited, moved, removed or added unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from statek_sim.agent.checkpoints.records import SCHEMA, STATUSES, Checkpoint, Entry
from statek_sim.agent.checkpoints.seal import Anchor, Sealer, check_anchor
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged
from statek_sim.store.codec import canonical, decoded, encoded, from_text
from statek_sim.values import JSON

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
