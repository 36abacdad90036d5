"""The seam of stores: where runs are kept between processes, and what one is told about them.

A run is everything that shares one virtual clock and may share objects: its jobs, its world, its script. It belongs to
one worker at a time, and every commit says which revision it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from statek_sim.values import JSON

LEASE: Final = 60.0
"""Seconds for which a run belongs to a worker that is not heard of; every commit and renewal begins them anew."""

Status = Literal["running", "ended"]
"""`running`: somebody has to go on with it. `ended`: nothing is left to do until something comes from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to commit to a run. `fence` grows with every claim; `revision` is the newest commit's number."""

    run: str
    worker: str
    fence: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """One commit: rows that are new or other, names of rows that are gone, events that were added to the trace.

    Long rows are there in pieces, see `pieces`: those that changed.
    """

    rows: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[str] = ()
    events: Sequence[str] = ()
    status: Status = "running"

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone or self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A run as it was committed last. `about` is what it runs, as who began it told."""

    run: str
    about: Mapping[str, JSON]
    status: Status
    revision: int
    rows: Mapping[str, str]
    events: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a list of runs says of one. `worker` is who works on it, empty for nobody, for `left` seconds yet."""

    run: str
    status: Status
    revision: int
    worker: str
    left: float


class RunStore(Protocol):
    """Keeps runs. What `commit` has returned from survives any crash; any other commit is whole or not there."""

    address: str
    lease_seconds: float

    def begin(self, run: str, about: Mapping[str, JSON], *, worker: str) -> Lease:
        """Make a run and take it; `BadStore` when there is one of this name."""

    def claim(self, run: str, *, worker: str) -> Lease:
        """Take a run; raises `RunHeld` while another worker's lease runs, `BadStore` when there is none."""

    def claim_next(self, *, worker: str, besides: Collection[str] = ()) -> Lease | None:
        """Take one of the runs that somebody has to go on with and that are nobody's, `besides` some; None for none."""

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Make changes durable and return the lease with their revision; raises `RunTakenOver`."""

    def renew(self, lease: Lease) -> None:
        """Begin the time of a lease anew, also from another thread; raises `RunTakenOver`."""

    def release(self, lease: Lease) -> None:
        """Give a run back; nothing happens to one that was taken over."""

    def load(self, run: str) -> Stored:
        """Return a run as it was committed last; raises `BadStore` and `DamagedStore`."""

    def runs(self) -> Sequence[Listed]:
        """Return all runs, by name."""

    def close(self) -> None:
        """Let go of files and connections."""
