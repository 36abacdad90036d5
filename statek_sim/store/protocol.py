"""The seam of stores: where runs are kept between processes, and what a store says about them.

A run is what one worker goes on with: the jobs of engine one that share a virtual clock, or one session of engine two.
It consists of named rows and a log of events. It belongs to one worker at a time, and every commit names the revision
that it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal, Protocol
from urllib.parse import quote

from statek_sim.errors import BadInput, BadStore, Fenced, Held, NoSuchRun
from statek_sim.values import JSON

LEASE: Final = 60.0
"""Seconds for which a run belongs to a worker that gives no sign of life; every commit and renewal begins them anew."""

Kind = Literal["jobs", "session"]
"""What a run is: jobs of engine one, or a session of engine two. Names are unique in a store, whatever the kind."""

Status = Literal["running", "ended", "paused", "completed", "failed"]
"""`running`: a worker has to go on with it. Jobs are `ended` afterwards, sessions one of the others.

Source: the harness document §4.
"""

LONGEST_NAME: Final = 200
"""Characters of a run's name as a percent-encoded path segment, which is its folder in a store of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to commit to a run. `fence` grows with every claim; `revision` is the newest commit's number."""

    run: str
    worker: str
    fence: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """One commit: rows that are new or changed, names of rows that are gone, events to append to the log.

    Events are texts without a line break. `notes` are texts for people by path: a store of files writes them beside
    the run, the others leave them out, and no store reads them.
    """

    rows: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[str] = ()
    events: Sequence[str] = ()
    status: Status = "running"
    notes: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone or self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A run as of its newest commit. `about` is what it runs, as given by the worker that made it."""

    run: str
    about: Mapping[str, JSON]
    status: Status
    revision: int
    rows: Mapping[str, str]
    events: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One run in a list of runs; `status` is `damaged` where it cannot be read.

    `worker` holds its lease for `left` more seconds; it is empty for nobody.
    """

    run: str
    status: str
    revision: int
    worker: str
    left: float


class Store(Protocol):
    """Keeps runs. What `commit` has returned from survives any crash; any other commit is whole or not there."""

    address: str
    lease_seconds: float

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Take a run; with `about` a run that is not there is made, and has revision 0 until its first commit.

        A worker may claim its own run again. Raises `Held` while another worker's lease runs, and `BadStore` when there
        is no such run or it is of another kind.
        """

    def claim_next(self, *, worker: str, kind: Kind = "jobs", besides: Collection[str] = ()) -> Lease | None:
        """Take the run of a kind that waits longest of those that are running and free; None when there is none."""

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Make changes durable and return the lease with their revision; raises `Fenced`."""

    def renew(self, lease: Lease) -> None:
        """Begin the time of a lease anew, also from another thread; raises `Fenced`."""

    def release(self, lease: Lease) -> None:
        """Give a run back; nothing happens to one that another worker has taken over."""

    def load(self, run: str) -> Stored:
        """Return a run as of its newest commit; raises `NoSuchRun` and `Damaged`.

        Anybody may call it, also while the run's worker commits.
        """

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return all runs of a kind by name; a damaged one has the status that can be read, or `damaged`."""

    def close(self) -> None:
        """Close files and connections."""


def nobody_is_gone(_worker: str) -> bool:
    """Return False: it is not known of any worker that it is dead."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How every store grants leases, and its messages about them.

    `clock` returns seconds that all workers share, `seconds` are those of one lease, `is_gone` knows of workers that
    are certainly dead, whose leases need not run out. `address` is what errors call the store.
    """

    address: str
    clock: Callable[[], float]
    seconds: float = LEASE
    is_gone: Callable[[str], bool] = nobody_is_gone

    def __post_init__(self) -> None:
        if not (isfinite(self.seconds) and self.seconds > 0):
            raise BadInput(f"a lease takes a number of seconds above 0, not {self.seconds!r}")

    def until(self) -> float:
        """Return when a lease ends that begins now."""
        return self.clock() + self.seconds

    def left(self, worker: str, until: float) -> float:
        """Return the seconds for which a worker still holds a lease that ends at `until`; 0 for a free run."""
        left = until - self.clock()
        return left if worker and left > 0 and not self.is_gone(worker) else 0.0

    def check_free(self, run: str, holder: str, until: float, *, worker: str) -> None:
        """Raise `Held` unless `worker` may take a run."""
        left = self.left(holder, until)
        if left > 0 and holder != worker:
            raise Held(
                f"{self.address}: run {run!r}: worker {holder!r} works on it, and its lease runs for {left:.0f} s yet; "
                "wait for it, or end that worker"
            )

    def check_kind(self, run: str, stored: object, wanted: str) -> None:
        """Raise `BadStore` for a run of another kind."""
        if stored != wanted:
            raise BadStore(
                f"{self.address}: run {run!r} is of kind {stored!r}, expected {wanted!r}; use another name"
            )

    def fenced(self, lease: Lease) -> Fenced:
        """Return the error of a worker whose lease is no longer the newest one."""
        return Fenced(
            f"{self.address}: run {lease.run!r}: another worker has taken it over from {lease.worker!r}, whose lease "
            f"was not renewed for {self.seconds:g} s, or it was given back; nothing after revision {lease.revision} is "
            "kept"
        )

    def unknown(self, run: str, known: Sequence[str]) -> NoSuchRun:
        """Return the error about a run that is not there."""
        names = ", ".join(map(repr, known)) or "none"
        return NoSuchRun(f"{self.address}: there is no run {run!r}; there are: {names}")

    def check_name(self, run: str) -> None:
        """Raise `BadStore` for what cannot name a run."""
        if not run or len(quote(run, safe="")) > LONGEST_NAME or not run.isprintable():
            raise BadStore(
                f"{self.address}: a run's name has printable characters, and at most {LONGEST_NAME} of them when "
                f"percent-encoded; got {run!r}"
            )
