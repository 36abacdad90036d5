"""What every store is given beside its place: the clock and length of leases, the key of seals, the anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import NotRequired, TypedDict

from statek_sim.agent.checkpoints.records import LEASE
from statek_sim.agent.checkpoints.seal import Anchor, Sealer
from statek_sim.errors import BadInput


class StoreTerms(TypedDict):
    """The arguments of a store's constructor, by name.

    `clock` returns seconds by which leases are measured, alike for all workers; `lease` are the seconds of a lease
    (60). `key` and `anchor` are those of `seal`.
    """

    clock: Callable[[], float]
    key: NotRequired[bytes | None]
    anchor: NotRequired[Anchor | None]
    lease: NotRequired[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The arguments of a store's constructor as a store uses them, with what stands for those that were not given."""

    clock: Callable[[], float]
    key: bytes | None = None
    anchor: Anchor | None = None
    lease: float = LEASE

    def __post_init__(self) -> None:
        if not (isfinite(self.lease) and self.lease > 0):
            raise BadInput(f"a lease takes a number of seconds above 0, not {self.lease!r}")

    @property
    def sealer(self) -> Sealer:
        """What makes and checks the store's seals."""
        return Sealer(self.key)

    def until(self) -> float:
        """Return when a lease ends that begins now."""
        return self.clock() + self.lease

    def anchored(self, session: str, number: int, seal: str) -> None:
        """Anchor a checkpoint that is durable, where there is an anchor."""
        if self.anchor is not None:
            self.anchor.write(session, number, seal)
