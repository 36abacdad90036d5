"""The interface for stores, which keep runs between processes, and the rules for leases.

A run is the unit that a worker continues: reference runtime jobs with a common virtual clock, or one session
of the tool-calling agent. A run consists of named rows and an event log. It belongs to one worker at a time,
and every commit refers to the previous revision.
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
"""Seconds after which a silent worker loses its run; every commit and renewal restarts the countdown."""

Kind = Literal["jobs", "session"]
"""A run's kind: reference runtime jobs, or an agent session. Names are unique in a store across kinds."""

Status = Literal["running", "ended", "paused", "completed", "failed"]
"""A run's status: `running` while it needs a worker.

After that, a run of kind `jobs` is `ended`, and a session is `paused`, `completed` or `failed`.

Source: the harness document §4.
"""

LONGEST_NAME: Final = 200
"""Maximum length of a run's name as a percent-encoded path segment, which is its folder in a file store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to commit to a run. `fence` grows with every claim; `revision` is the newest commit's number."""

    run: str
    worker: str
    fence: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The contents of one commit: new or changed rows, the names of removed rows (`gone`), and events for the log.

    Events are strings without line breaks. `notes` maps paths to human-readable text: a file store writes it
    next to the run, other stores ignore it, and no store reads it.
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
    """A run as of its newest commit. `about` is the description given by the worker that created the run."""

    run: str
    about: Mapping[str, JSON]
    status: Status
    revision: int
    rows: Mapping[str, str]
    events: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in a list of runs; `status` is `damaged` if the run cannot be read.

    `worker` holds the lease for another `left` seconds, and is empty if there is no lease.
    """

    run: str
    status: str
    revision: int
    worker: str
    left: float


class Store(Protocol):
    """Keeps runs.

    Once `commit` returns, the commit survives any crash; an interrupted commit is either complete or absent.
    """

    address: str
    lease_seconds: float

    def claim(
        self, run: str, *, worker: str, kind: Kind = "jobs", about: Mapping[str, JSON] | None = None
    ) -> Lease:
        """Claim a run; if `about` is given, a missing run is created. Its revision is 0 until the first commit.

        A worker may claim its own run again. Raises `Held` during another worker's lease, and `BadStore` for
        an unknown run or a run of another kind.
        """

    def claim_next(self, *, worker: str, kind: Kind = "jobs", besides: Collection[str] = ()) -> Lease | None:
        """Claim the unfinished run of this kind that has waited longest for a worker, or return None.

        `worker` is the claiming worker's name, and `besides` are the names of runs to skip.
        """

    def commit(self, lease: Lease, changes: Changes) -> Lease:
        """Save changes durably and return the lease with their revision; raises `Fenced` if the run was taken over."""

    def renew(self, lease: Lease) -> None:
        """Extend a lease to its full time from now, in any thread; raises `Fenced` if the run was taken over."""

    def release(self, lease: Lease) -> None:
        """Release a run; does nothing if another worker has taken it over."""

    def load(self, run: str) -> Stored:
        """Return a run as of its newest commit; raises `NoSuchRun` and `Damaged`.

        Any process may call it, even while the run's worker is committing.
        """

    def runs(self, kind: Kind = "jobs") -> Sequence[Listed]:
        """Return all runs of a kind, sorted by name; a run that cannot be read has the status `damaged`.

        Raises `Damaged` if the list itself cannot be read.
        """

    def close(self) -> None:
        """Close files and connections."""


def nobody_is_gone(_worker: str) -> bool:
    """Return False, because no worker is known to be dead."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """The rules by which all stores grant leases, and their error messages.

    `clock` returns the time in seconds, shared by all workers; `seconds` is the lease time; `is_gone` returns
    whether a worker is certainly dead, so that there is no need to wait for its lease to expire. `address` is
    the store's name in errors.
    """

    address: str
    clock: Callable[[], float]
    seconds: float = LEASE
    is_gone: Callable[[str], bool] = nobody_is_gone

    def __post_init__(self) -> None:
        if not (isfinite(self.seconds) and self.seconds > 0):
            raise BadInput(f"expected a lease time greater than 0 seconds, got {self.seconds!r}")

    def until(self) -> float:
        """Return when a lease that starts now will end."""
        return self.clock() + self.seconds

    def left(self, worker: str, until: float) -> float:
        """Return the seconds until a lease that ends at `until` expires; 0 for a free run."""
        left = until - self.clock()
        return left if worker and left > 0 and not self.is_gone(worker) else 0.0

    def check_free(self, run: str, holder: str, until: float, *, worker: str) -> None:
        """Raise `Held` unless `worker` may claim the run."""
        left = self.left(holder, until)
        if left > 0 and holder != worker:
            raise Held(
                f"{self.address}: run {run!r}: held by worker {holder!r}, whose lease lasts another "
                f"{left:.0f} s; wait, or end that worker"
            )

    def check_kind(self, run: str, stored: object, wanted: str) -> None:
        """Raise `BadStore` for a run of another kind."""
        if stored != wanted:
            raise BadStore(
                f"{self.address}: run {run!r} has kind {stored!r}, expected {wanted!r}; use another name"
            )

    def fenced(self, lease: Lease) -> Fenced:
        """Return the error for a worker whose lease is no longer the newest."""
        return Fenced(
            f"{self.address}: run {lease.run!r}: worker {lease.worker!r} no longer has the lease: it was not renewed "
            f"for {self.seconds:g} s and another worker took over, or it was released; changes after revision "
            f"{lease.revision} are lost"
        )

    def unknown(self, run: str, known: Sequence[str]) -> NoSuchRun:
        """Return the error for an unknown run."""
        names = ", ".join(map(repr, known)) or "none"
        return NoSuchRun(f"{self.address}: no run {run!r}; runs: {names}")

    def check_name(self, run: str) -> None:
        """Raise `BadStore` for an invalid run name."""
        if not run or len(quote(run, safe="")) > LONGEST_NAME or not run.isprintable():
            raise BadStore(
                f"{self.address}: a run's name must contain only printable characters, and at most "
                f"{LONGEST_NAME} of them when percent-encoded; got {run!r}"
            )
