"""Checkpoints and receipts as sealed JSON, the same in every store, and the checks when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from statek_sim.agent.checkpoints.codec import canonical, decoded, encoded, from_text
from statek_sim.agent.checkpoints.records import SCHEMA, STATUSES, Checkpoint, Entry
from statek_sim.agent.checkpoints.seal import Anchor, Sealer, check_anchor
from statek_sim.agent.effects import Receipt
from statek_sim.errors import Damaged
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One checkpoint as it is stored: what it says about itself, its state as canonical JSON, its seal."""

    number: int
    metadata: dict[str, JSON]
    state: str
    seal: str

    @property
    def previous(self) -> str:
        """The seal of the one before it."""
        return str(self.metadata.get("previous", ""))

    @property
    def plan(self) -> str:
        """The hash of what the session is about."""
        return str(self.metadata["plan"])


def sheet_of(
    session: str, number: int, entry: Entry, *, plan: str, fence: int, previous: str, sealer: Sealer
) -> Sheet:
    """Return an entry sealed in its place."""
    metadata: dict[str, JSON] = {
        "schema": SCHEMA,
        "plan": plan,
        "point": entry.point,
        "status": entry.status,
        "at": encoded(entry.at, path="at"),
        "fence": fence,
        "previous": previous,
        "progress": encoded(entry.progress, path="progress"),
    }
    state = canonical(encoded(entry.state))
    content: JSON = {"session": session, "number": number, "metadata": metadata}
    return Sheet(number=number, metadata=metadata, state=state, seal=sealer.seal(content, state))


def checkpoint_of(session: str, sheet: Sheet) -> Checkpoint:
    """Return a stored checkpoint that was checked, as values."""
    fields = sheet.metadata
    entry = Entry(
        point=str(fields["point"]),
        status=fields["status"],  # type: ignore[arg-type]  # checked by `check_sheet`
        at=decoded(fields["at"]),
        state=decoded(from_text(sheet.state, what="a state")),
        progress=decoded(fields["progress"]),
    )
    return Checkpoint(session=session, number=sheet.number, plan=sheet.plan, entry=entry)


def check_sheet(session: str, sheet: Sheet, sealer: Sealer) -> None:
    """Raise `Damaged` for a checkpoint that is not what was saved, or that a newer version saved."""
    what = f"session {session!r}, checkpoint {sheet.number}"
    schema = sheet.metadata.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise Damaged(
            f"{what} has schema {schema}, and this version reads up to {SCHEMA}; update this package"
        )
    content: JSON = {"session": session, "number": sheet.number, "metadata": sheet.metadata}
    sealer.check(content, sheet.seal, what=what, state=sheet.state)
    if schema != SCHEMA or sheet.metadata.get("status") not in STATUSES:
        raise Damaged(f"{what} is of no version that was ever written: schema {schema!r}")


def check_chain(
    session: str,
    sheets: Sequence[Sheet],
    sealer: Sealer,
    anchor: Anchor | None,
    *,
    first: int,
    head: int,
    seal: str,
) -> None:
    """Raise `Damaged` unless these are a session's checkpoints from `first` to `head`, one after the other.

    `seal` is the newest one's, as the session has it.
    """
    expected = list(range(first, head + 1)) if head else []
    got = [sheet.number for sheet in sheets]
    if got != expected:
        raise Damaged(
            f"session {session!r} has the checkpoints {got}, expected {expected}: some were removed or added"
        )
    for sheet in sheets:
        check_sheet(session, sheet, sealer)
    for before, after in pairwise(sheets):
        if after.previous != before.seal:
            raise Damaged(
                f"session {session!r}: checkpoint {after.number} does not follow checkpoint {before.number}"
            )
    newest = (sheets[-1].number, sheets[-1].seal) if sheets else None
    if newest is not None and newest[1] != seal:
        raise Damaged(f"session {session!r}: checkpoint {head} is not the one that was saved last")
    check_anchor(anchor, session, newest, sheets[-1].previous if sheets else "")


def receipt_json(receipt: Receipt) -> dict[str, JSON]:
    """Return a receipt as JSON."""
    return {
        "job": encoded(receipt.job),
        "key": encoded(receipt.key),
        "at": encoded(receipt.at),
        "status": receipt.status,
        "text": encoded(receipt.text),
    }


def receipt_from(fields: dict[str, Any]) -> Receipt:
    """Return the receipt that `receipt_json` made JSON of."""
    return Receipt(
        job=decoded(fields["job"]),
        key=decoded(fields["key"]),
        at=decoded(fields["at"]),
        status=str(fields["status"]),
        text=decoded(fields["text"]),
    )


def receipt_seal(receipt: dict[str, JSON], before: str, sealer: Sealer) -> str:
    """Return a receipt's seal, which covers what it follows: the checkpoint, or the receipt before it."""
    return sealer.seal({"receipt": dict(receipt), "previous": before})
