"""A cassette that several tests, workers or processes write: nothing is lost, and the file comes out in one order.

Every write reads the file again under a lock and merges. What one run of tests has recorded is noted beside the lock,
for all its workers: which test asked for what, in the order of the tests and not of the clock. A recording is known by
its request and by how often that was asked before in the same test, so that two tests with the same question share
the recording, as they do when one runs after the other.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from statek_sim.cassettes.document import parse, read
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.store import write
from statek_sim.errors import BadCassette, BadInput

PATIENCE: Final = 60.0
"""Seconds that a process waits for another to write the same cassette."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of tests, the same `key` in all its workers; `order` is the place of the test among them."""

    key: str
    order: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a session: its fingerprint, how often that was asked before, and what was recorded or None."""

    fingerprint: str
    nth: int
    exchange: Exchange | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A recording of this run: who asked first, and for what."""

    order: int
    number: int
    fingerprint: str
    nth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """What a run has done with a cassette; `digest` is of the file as it left it, whose last entries are `fresh`."""

    run: str = ""
    existed: bool = False
    failed: bool = False
    digest: str = ""
    fresh: tuple[_Entry, ...] = ()


@dataclass(slots=True)
class _Content:
    """A cassette taken apart: what was there before the run, and what the run has recorded, by request."""

    kept: list[Exchange]
    fresh: dict[tuple[str, int], tuple[_Entry, Exchange]] = field(default_factory=dict)

    def ordered(self) -> list[tuple[_Entry, Exchange]]:
        return sorted(self.fresh.values(), key=lambda pair: (pair[0].order, pair[0].number))


def existed_before(path: Path, run: Run) -> bool:
    """Return whether a cassette was there when the first test of the run opened it."""
    with _locked(path):
        notes = _notes_of(path, run)
        return notes.existed


def merged(
    path: Path, asked: Iterable[Asked], matching: Matching, *, rewrites: bool, replaces: bool, run: Run | None
) -> None:
    """Write a session's recordings into a cassette, together with what others have written meanwhile.

    `rewrites` starts from nothing once in a run; `replaces` takes the place of older recordings of the same requests.
    `BadInput` when the file cannot be read or written; nothing of it is changed then.
    """
    with _locked(path):
        notes = _notes_of(path, run)
        content = _content(path, notes, rewrites=rewrites)
        if rewrites and not notes.fresh:
            _remember(path)
        mine = {one.fingerprint for one in asked if one.exchange is not None}
        if rewrites and not notes.failed:
            content.kept = []
        if replaces or rewrites:
            known = mine if replaces else mine | {fingerprint for fingerprint, _ in content.fresh}
            content.kept = [one for one in content.kept if matching.fingerprint(one.request) not in known]
        changed = _add(content, asked, 0 if run is None else run.order)
        if changed or rewrites:
            _save(path, content, notes)


def failed(path: Path, matching: Matching, run: Run) -> None:
    """Note that a test failed that was to rewrite a cassette with others: what it played before comes back."""
    with _locked(path):
        notes = replace(_notes_of(path, run), failed=True)
        content = _content(path, notes, rewrites=True)
        before = _beside(path, "before")
        if notes.fresh and before.exists():
            there = {matching.fingerprint(one.request) for _, one in content.fresh.values()}
            old = parse(before.read_bytes(), path)
            content.kept = [one for one in old if matching.fingerprint(one.request) not in there]
            _save(path, content, notes)
        else:
            _note(path, notes)


def _add(content: _Content, asked: Iterable[Asked], order: int) -> bool:
    """Add what a session asked for; whoever comes first in the order of the tests has asked for it."""
    changed = False
    for number, one in enumerate(asked):
        key = (one.fingerprint, one.nth)
        entry = _Entry(order, number, *key)
        there = content.fresh.get(key)
        if there is None:
            if one.exchange is not None:
                content.fresh[key] = (entry, one.exchange)
                changed = True
        elif (entry.order, entry.number) < (there[0].order, there[0].number):
            content.fresh[key] = (entry, one.exchange or there[1])
            changed = True
    return changed


def _content(path: Path, notes: _Notes, *, rewrites: bool) -> _Content:
    if not path.exists():
        return _Content([])
    try:
        exchanges = read(path)
    except BadCassette:
        # Rewriting is the way out of a damaged cassette.
        if rewrites:
            return _Content([])
        raise
    count = len(notes.fresh)
    if not count or notes.digest != sha256(path.read_bytes()).hexdigest():
        return _Content(exchanges)
    pairs = zip(notes.fresh, exchanges[-count:], strict=True)
    fresh = {(entry.fingerprint, entry.nth): (entry, exchange) for entry, exchange in pairs}
    return _Content(exchanges[:-count], fresh)


def _save(path: Path, content: _Content, notes: _Notes) -> None:
    ordered = content.ordered()
    exchanges = [*content.kept, *(exchange for _, exchange in ordered)]
    if exchanges:
        write(path, exchanges)
        digest = sha256(path.read_bytes()).hexdigest()
    else:
        path.unlink(missing_ok=True)
        digest = ""
    if notes.run:
        _note(path, replace(notes, digest=digest, fresh=tuple(entry for entry, _ in ordered)))


def _remember(path: Path) -> None:
    """Keep a cassette as it was before a run rewrites it, in case a test fails."""
    if path.exists():
        _beside(path, "before").write_bytes(path.read_bytes())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _beside(path, "lock")
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(lock, timeout=PATIENCE):
            yield
    except Timeout:
        raise BadInput(
            f"{path}: another process has been writing it for {PATIENCE:.0f} s; {lock} is its lock"
        ) from None


def _beside(path: Path, kind: str) -> Path:
    """Return a file of ours about a cassette, outside the project: the same one for everybody on this machine."""
    name = blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"statek-cassettes-{os.getuid()}" / f"{name}.{kind}"


def _notes_of(path: Path, run: Run | None) -> _Notes:
    """Return what the run has noted; the first look of a run notes whether the cassette is there."""
    if run is None:
        return _Notes(existed=path.exists())
    try:
        told = json.loads(_beside(path, "notes").read_text("ascii"))
        notes = _Notes(**{**told, "fresh": tuple(_Entry(*entry) for entry in told["fresh"])})
    except (OSError, ValueError, TypeError, KeyError):
        notes = _Notes()
    if notes.run != run.key:
        notes = _Notes(run=run.key, existed=path.exists())
        _beside(path, "before").unlink(missing_ok=True)
        _note(path, notes)
    return notes


def _note(path: Path, notes: _Notes) -> None:
    told = asdict(notes)
    told["fresh"] = [list(entry.values()) for entry in told["fresh"]]
    _beside(path, "notes").write_text(json.dumps(told), "ascii")
