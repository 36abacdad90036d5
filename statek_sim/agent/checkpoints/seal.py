"""Seals: each record's seal covers its content, its place and the seal of the record before it.

Without a key a seal shows damage; with one, also edits by whoever can write to the store. What a seal cannot show is a
whole store put back as it was yesterday: for that the newest seal is kept somewhere else, in an `Anchor`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Protocol

from statek_sim.errors import Damaged
from statek_sim.store.codec import canonical
from statek_sim.values import JSON


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
