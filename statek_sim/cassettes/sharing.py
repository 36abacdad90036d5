"""What one run of tests has recorded into its cassettes, so that several tests can record into one file.

The tests of a run record one after the other in one process, and the file is in the order in which they did. Two tests
that ask the same question share its recording. A run that rewrites drops what was there before when every test that
shares the cassette has rewritten its part: where one fails or has no turn, what it played before is still there.

Another process that changes the file meanwhile is not waited for: the run that comes second is told, and changes
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from statek_sim.cassettes.document import read
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.store import write_text
from statek_sim.errors import BadCassette, BadInput


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording of a session: its request's fingerprint, how often that was asked before, and the exchange."""

    fingerprint: str
    nth: int
    exchange: Exchange


@dataclass(slots=True)
class CassetteState:
    """A cassette as a run last saw it.

    `existed` says whether it was there when the run first opened it; `fresh` are the run's recordings, which are the
    last of the file; `rewritten_by` are the tests that have rewritten their part.
    """

    existed: bool
    digest: str
    fresh: dict[tuple[str, int], Exchange] = field(default_factory=dict)
    rewritten_by: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Run:
    """One test in a run; `order` is its place among all tests, and `sharers` are the places of those that share.

    All tests of a run have the same `states`: its cassettes by their real path.
    """

    order: int = 0
    sharers: frozenset[int] = frozenset()
    states: dict[str, CassetteState] = field(default_factory=dict)

    def state(self, path: Path) -> CassetteState:
        """Return what the run knows about a cassette; the first look at it is remembered."""
        place = os.path.realpath(path)
        if place not in self.states:
            self.states[place] = CassetteState(path.exists(), _digest(path))
        return self.states[place]


def merged(
    path: Path,
    requests: Sequence[Recorded],
    matching: Matching,
    *,
    rewrites: bool,
    replaces: bool,
    run: Run,
) -> None:
    """Write a session's recordings into a cassette, behind those of earlier tests of its run.

    `rewrites` drops what was there before the run when all who share the cassette have rewritten their part; `replaces`
    takes the place of older recordings of the same requests. `BadInput` when the file cannot be read or written, or
    when something else has changed it since the run saw it; nothing of it is changed then.
    """
    state = run.state(path)
    if _digest(path) != state.digest:
        raise BadInput(
            f"{path}: another process has changed it meanwhile, so that nothing was recorded into it; "
            "expected one run at a time to record a cassette"
        )
    kept = _kept(path, len(state.fresh), rewrites=rewrites)
    if rewrites:
        state.rewritten_by.add(run.order)
    if rewrites and run.sharers <= state.rewritten_by:
        kept = []
    elif replaces or rewrites:
        known = {request.fingerprint for request in requests}
        known |= set() if replaces else {fingerprint for fingerprint, _ in state.fresh}
        kept = [one for one in kept if matching.fingerprint(one.request) not in known]
    for request in requests:
        state.fresh.setdefault((request.fingerprint, request.nth), request.exchange)
    exchanges = [*kept, *state.fresh.values()]
    if exchanges:
        write_text(path, rendered(exchanges))
    else:
        path.unlink(missing_ok=True)
    state.digest = _digest(path)


def _kept(path: Path, fresh: int, *, rewrites: bool) -> list[Exchange]:
    """Return what was in a cassette before the run, which wrote the last `fresh` recordings of it."""
    if not path.exists():
        return []
    try:
        exchanges = read(path)
    except BadCassette:
        # Rewriting is the way out of a damaged cassette.
        if rewrites:
            return []
        raise
    return exchanges[: len(exchanges) - fresh]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
