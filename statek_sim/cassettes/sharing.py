"""A cassette that several tests or workers of a run write: nothing is lost, and the file comes out in one order.

Every write reads the file again under a lock and merges. What a run of tests has recorded is noted beside the lock,
for all its workers and apart from other runs: which test asked for what, in the order of the tests and not of the
clock. A recording is known by its request and by how often that was asked before in the same test, so that two tests
with the same question share the recording, as they do when one runs after the other.

A run that rewrites takes the place of what was there only when every test that shares the cassette has had its turn:
where one fails, is killed or has no turn, what it played before is still there. Runs at the same time add to one
another's recordings; one that rewrites takes away what another has recorded before, which is told when it writes again.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
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

    run: str = ""
    existed: bool = False
    written: _Written = _Written()
    next: _Written = _Written()


@dataclass(frozen=True, slots=True)
class _Book:
    """The notes of the latest runs, and which of them wrote the file last."""

    runs: dict[str, _Notes] = field(default_factory=dict)
    saved: str = ""


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
    when another run has rewritten it since this one wrote; nothing of it is changed then.
    """
    with _locked(path):
        notes = _notes_of(path, run)
        content = _content(path, notes.written, rewrites=rewrites)
        of_others = _is_of_others(path, notes.written, content, notes.run)
        if of_others:
            _check_kept(path, notes.written, content, matching)
        done = notes.written.done
        if rewrites and run is not None:
            done = tuple(sorted({*done, run.order}))
        mine = {request.fingerprint for request in requests if request.exchange is not None}
        if rewrites and not of_others and (run is None or run.sharers <= {*done}):
            content.kept = []
        elif replaces or rewrites:
            known = mine if replaces else mine | {fingerprint for fingerprint, _ in content.fresh}
            content.kept = [
                exchange for exchange in content.kept if matching.fingerprint(exchange.request) not in known
            ]
        changed = _add(content, requests, 0 if run is None else run.order)
        if changed or rewrites:
            _save(path, content, notes, done)


def _is_of_others(path: Path, written: _Written, content: _Content, run: str) -> bool:
    """Return whether another run has written the file since this one did."""
    changed = bool(written.fresh) and not content.fresh
    return changed and _book(path).saved != run


def _check_kept(path: Path, written: _Written, content: _Content, matching: Matching) -> None:
    there = {matching.fingerprint(exchange.request) for exchange in content.kept}
    lost = sum(entry.fingerprint not in there for entry in written.fresh)
    if lost:
        raise BadInput(
            f"{path}: another run has rewritten it meanwhile, and {lost} of this run's recordings are gone; "
            "expected one run at a time to rewrite a cassette; record this one again when the other has ended"
        )


def _add(content: _Content, requests: Sequence[Asked], order: int) -> bool:
    """Add what a session asked for; whoever comes first in the order of the tests has asked for it."""
    changed = False
    for number, request in enumerate(requests):
        key = (request.fingerprint, request.nth)
        entry = _Entry(order, number, *key)
        there = content.fresh.get(key)
        if there is None:
            if request.exchange is not None:
                content.fresh[key] = (entry, request.exchange)
                changed = True
        elif (entry.order, entry.number) < (there[0].order, there[0].number):
            content.fresh[key] = (entry, request.exchange or there[1])
            changed = True
    return changed


def _content(path: Path, written: _Written, *, rewrites: bool) -> _Content:
    if not path.exists():
        return _Content([])
    try:
        exchanges = read(path)
    except BadCassette:
        # Rewriting is the way out of a damaged cassette.
        if rewrites:
            return _Content([])
        raise
    count = len(written.fresh)
    if not count or written.digest != _digest(path.read_bytes()):
        return _Content(exchanges)
    pairs = zip(written.fresh, exchanges[-count:], strict=True)
    fresh = {(entry.fingerprint, entry.nth): (entry, exchange) for entry, exchange in pairs}
    return _Content(exchanges[:-count], fresh)


def _save(path: Path, content: _Content, notes: _Notes, done: tuple[int, ...]) -> None:
    ordered = content.ordered()
    exchanges = [*content.kept, *(exchange for _, exchange in ordered)]
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
        _note(path, replace(notes, written=written, next=_Written()), saved=True)


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


def _notes_of(path: Path, run: Run | None) -> _Notes:
    """Return what the run has noted; the first look of a run notes whether the cassette is there."""
    if run is None:
        return _Notes(existed=path.exists())
    notes = _book(path).runs.get(run.key)
    if notes is None:
        notes = _Notes(run=run.key, existed=path.exists())
        _note(path, notes)
    return notes


def _note(path: Path, notes: _Notes, *, saved: bool = False) -> None:
    book = _book(path)
    others = [(key, other) for key, other in book.runs.items() if key != notes.run]
    runs = dict([*others, (notes.run, notes)][-_MOST_RUNS:])
    _write(path, replace(book, runs=runs, saved=notes.run if saved else book.saved))


def _book(path: Path) -> _Book:
    """Return the notes about a cassette; none when there are none, or they are no notes of ours.

    What was being written when its writer was killed counts where the file is that one.
    """
    try:
        members = json.loads(_beside(path, "notes").read_text("ascii"))
        runs = {
            key: _Notes(
                run=key,
                existed=bool(notes["existed"]),
                written=_written(notes["written"]),
                next=_written(notes["next"]),
            )
            for key, notes in members["runs"].items()
        }
        return _settled(path, _Book(runs, members["saved"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _Book()


def _written(members: dict[str, Any]) -> _Written:
    fresh = tuple(_Entry(**entry) for entry in members["fresh"])
    return _Written(members["digest"], fresh, tuple(members["done"]))


def _settled(path: Path, book: _Book) -> _Book:
    unsure = [notes for notes in book.runs.values() if notes.next.digest]
    if not unsure or not path.exists():
        return book
    digest = _digest(path.read_bytes())
    for notes in unsure:
        if notes.next.digest == digest:
            known = replace(notes, written=notes.next, next=_Written())
            return replace(book, runs={**book.runs, notes.run: known}, saved=notes.run)
    return book


def _write(path: Path, book: _Book) -> None:
    # Half of the notes would be none, and who rewrites would begin again.
    members = json.dumps(asdict(book), default=list).encode("ascii")
    replace_file(_beside(path, "notes"), members, durable=False)
