"""A cassette that several tests or workers of a run write: nothing is lost, and the file comes out in one order.

Every write reads the file again under a lock and merges. Beside the lock is noted what a run has recorded, for all its
workers: which test asked for what, in the order of the tests and not of the clock. A recording is known by its request
and by how often that was asked before in the same test, so that two tests with the same question share the recording,
as they do when one runs after the other.

A run that rewrites takes the place of what was there only when every test that shares the cassette has had its turn:
where one fails, is killed or has no turn, what it played before is still there. Runs at the same time add to one
another's recordings; a run whose recordings another one has taken away is told, and changes nothing.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from statek_sim.atomic_files import replace_file
from statek_sim.cassettes.document import read
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.store import write_text
from statek_sim.errors import BadCassette, BadInput

PATIENCE: Final = 60.0
"""Seconds that a process waits for another to write the same cassette."""
_MOST_RUNS: Final = 16
"""Runs of which there are notes about a cassette, the latest."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of tests, the same `key` in all its workers; `order` is the place of the test among them.

    `sharers` are the places of all tests of the run that use the cassette, none where it is this one alone.
    """

    key: str
    order: int
    sharers: frozenset[int] = frozenset()


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


@dataclass(frozen=True, slots=True)
class _Written:
    """A cassette as a run left it: its digest, the entries at its end that are the run's, and the tests they are of."""

    digest: str = ""
    fresh: tuple[_Entry, ...] = ()
    done: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """What a run has done with a cassette. `next` is being written: its writer may be killed before it can say so."""

    run: str
    existed: bool
    written: _Written = _Written()
    next: _Written = _Written()

    def current(self, path: Path) -> _Written | None:
        """Return which of both the file is; None where something else has written it."""
        digest = _digest(path.read_bytes()) if path.exists() else ""
        return next((each for each in (self.written, self.next) if each.digest == digest), None)


_Fresh = dict[tuple[str, int], tuple[_Entry, Exchange]]
"""What the run has recorded, by request."""


def existed_before(path: Path, run: Run) -> bool:
    """Return whether a cassette was there when the first test of the run opened it."""
    with _locked(path):
        notes = _notes_of(path, run)
        _note(path, notes)
        return notes.existed


def merged(
    path: Path,
    requests: Sequence[Asked],
    matching: Matching,
    *,
    rewrites: bool,
    replaces: bool,
    run: Run | None,
) -> None:
    """Write a session's recordings into a cassette, together with what others have written meanwhile.

    `rewrites` drops what was there before the run when all who share the cassette have rewritten their part; `replaces`
    takes the place of older recordings of the same requests. `BadInput` when the file cannot be read or written, or
    when another run has taken away what this one wrote; nothing of it is changed then.
    """
    with _locked(path):
        notes = _notes_of(path, run)
        current = notes.current(path)
        kept, fresh = _content(path, (current or _Written()).fresh, rewrites=rewrites)
        of_others = current is None and bool(notes.written.fresh)
        if of_others:
            _check_kept(path, notes.written, kept, matching)
        done = (current or notes.written).done
        if rewrites and run is not None:
            done = tuple(sorted({*done, run.order}))
        if rewrites and not of_others and (run is None or run.sharers <= {*done}):
            kept = []
        elif replaces or rewrites:
            known = {request.fingerprint for request in requests if request.exchange is not None}
            known |= set() if replaces else {fingerprint for fingerprint, _ in fresh}
            kept = [one for one in kept if matching.fingerprint(one.request) not in known]
        if _add(fresh, requests, 0 if run is None else run.order) or rewrites:
            _save(path, kept, fresh, notes, done)


def _check_kept(path: Path, written: _Written, kept: Sequence[Exchange], matching: Matching) -> None:
    there = {matching.fingerprint(exchange.request) for exchange in kept}
    lost = sum(entry.fingerprint not in there for entry in written.fresh)
    if lost:
        raise BadInput(
            f"{path}: another run has rewritten it meanwhile, and {lost} of this run's recordings are gone; "
            "expected one run at a time to rewrite a cassette; record this one again when the other has ended"
        )


def _add(fresh: _Fresh, requests: Sequence[Asked], order: int) -> bool:
    """Add what a session asked for; whoever comes first in the order of the tests has asked for it."""
    changed = False
    for number, request in enumerate(requests):
        key = (request.fingerprint, request.nth)
        entry = _Entry(order, number, *key)
        there = fresh.get(key)
        if there is None:
            if request.exchange is not None:
                fresh[key] = (entry, request.exchange)
                changed = True
        elif (entry.order, entry.number) < (there[0].order, there[0].number):
            fresh[key] = (entry, request.exchange or there[1])
            changed = True
    return changed


def _content(path: Path, mine: Sequence[_Entry], *, rewrites: bool) -> tuple[list[Exchange], _Fresh]:
    """Return what was in a cassette before the run, and what the run has recorded: `mine`, at its end."""
    if not path.exists():
        return [], {}
    try:
        exchanges = read(path)
    except BadCassette:
        # Rewriting is the way out of a damaged cassette.
        if rewrites:
            return [], {}
        raise
    count = len(exchanges) - len(mine)
    pairs = zip(mine, exchanges[count:], strict=True)
    fresh = {(entry.fingerprint, entry.nth): (entry, exchange) for entry, exchange in pairs}
    return exchanges[:count], fresh


def _save(path: Path, kept: Sequence[Exchange], fresh: _Fresh, notes: _Notes, done: tuple[int, ...]) -> None:
    ordered = sorted(fresh.values(), key=lambda pair: (pair[0].order, pair[0].number))
    exchanges = [*kept, *(exchange for _, exchange in ordered)]
    text = rendered(exchanges) if exchanges else ""
    digest = _digest(text.encode("utf-8")) if exchanges else ""
    written = _Written(digest, tuple(entry for entry, _ in ordered), done)
    if notes.run:
        _note(path, replace(notes, next=written))
    if exchanges:
        write_text(path, text)
    else:
        path.unlink(missing_ok=True)
    if notes.run:
        _note(path, replace(notes, written=written, next=_Written()))


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = _beside(path, "lock")
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_ours(path, lock.parent)
        with FileLock(lock, timeout=PATIENCE):
            yield
    except Timeout:
        raise BadInput(
            f"{path}: another process has been writing it for {PATIENCE:.0f} s; {lock} is its lock"
        ) from None
    except OSError as error:
        raise BadInput(
            f"{path}: what is noted about it cannot be written to {lock.parent}: {error.strerror}"
        ) from error


def _check_ours(path: Path, folder: Path) -> None:
    """Let a folder pass that is ours alone: who else could write there would choose what becomes of a cassette."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise BadInput(
            f"{path}: {folder} is where its lock belongs, and it is no folder of yours; remove it, or set TMPDIR to a "
            "folder that nobody else can write"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        folder.chmod(0o700)


def _beside(path: Path, kind: str) -> Path:
    """Return a file of ours about a cassette, outside the project: the same one for everybody on this machine."""
    name = blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"statek-cassettes-{os.getuid()}" / f"{name}.{kind}"


def _notes_file(path: Path, run: str) -> Path:
    return _beside(path, f"{blake2b(run.encode(), digest_size=8).hexdigest()}.notes")


def _notes_of(path: Path, run: Run | None) -> _Notes:
    """Return what is noted of a run; what is no note of ours counts for nothing."""
    key = "" if run is None else run.key
    try:
        members = json.loads(_notes_file(path, key).read_text("ascii"))
        written, coming = (_written(members[name]) for name in ("written", "next"))
        return _Notes(run=key, existed=bool(members["existed"]), written=written, next=coming)
    except (OSError, ValueError, TypeError, KeyError):
        return _Notes(run=key, existed=path.exists())


def _written(members: dict[str, Any]) -> _Written:
    fresh = tuple(_Entry(**entry) for entry in members["fresh"])
    return _Written(members["digest"], fresh, tuple(members["done"]))


def _note(path: Path, notes: _Notes) -> None:
    file = _notes_file(path, notes.run)
    replace_file(file, json.dumps(asdict(notes)).encode("ascii"), durable=False)
    of_runs = file.parent.glob(_beside(path, "*.notes").name)
    for old in sorted(of_runs, key=lambda one: one.stat().st_mtime_ns)[:-_MOST_RUNS]:
        old.unlink(missing_ok=True)
