"""Finds, loads and atomically writes cassette files, including those shared by several tests in a run.

The tests in a run record one after another in one process, and the file contains their recordings in this order. Tests
that send the same request share its recording. A run that rewrites a shared cassette drops the old recordings once all
tests that share it have rewritten their parts; if a test fails or does not run, its old recordings are kept.

If another process changes the file in the meantime, the write raises an error and changes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from statek_sim.atomic_files import replace_file
from statek_sim.cassettes.document import read, rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Recordings
from statek_sim.errors import BadCassette, BadInput
from statek_sim.input_files import why_unreadable

LONGEST_NAME: Final = 255
"""Maximum length of a file name on common file systems, in bytes."""


def load(path: Path, matching: Matching) -> Recordings:
    """Return a cassette file's recordings; raises `BadCassette` if the file is invalid."""
    return Recordings(read(path), matching)


def check_writable(path: Path) -> None:
    """Raise `BadInput` if a cassette cannot be written; called before sending the requests to record."""
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise BadInput(f"{path}: the name is longer than {LONGEST_NAME} bytes; use a shorter one")
    try:
        above = next(folder for folder in Path(os.path.realpath(path)).parents if os.path.lexists(folder))
        if not above.is_dir():
            raise BadInput(f"{above}: expected a folder for cassettes, found a file")
        if not os.access(above, os.W_OK | os.X_OK):
            raise BadInput(f"{above}: the folder is not writable, so {path.name} cannot be recorded")
        if path.is_dir():
            raise BadInput(f"{path}: expected a cassette, found a folder")
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: expected a cassette, found a device, pipe or socket")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be a cassette: {error}") from None


def check_changeable(path: Path) -> None:
    """Raise `BadInput` if a cassette is read-only."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from None
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(
            f"{path}: the file is read-only, so nothing can be recorded; run chmod u+w to allow it"
        )


def write(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write a cassette atomically; the exchanges must not contain secrets (see `redaction.redacted`).

    Raises `BadInput` if the file cannot be written.
    """
    write_text(path, rendered(exchanges))


def write_text(path: Path, text: str) -> None:
    """Write a cassette's text atomically, so that readers and crashes see either the old or the new file.

    A link is followed, and the target keeps its permissions. Raises `BadInput` if the file cannot be written.
    """
    try:
        check_writable(path)
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            check_changeable(target)
        replace_file(target, text.encode("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot write the cassette: {error.strerror or error}") from error


SUFFIXES: Final = (".yaml", ".yml")
FOLDER: Final = "cassettes"
"""The name of the cassette folder next to the tests, as in pytest-recording."""
ASIDE: Final = ".new"
"""Part of a failed re-recording's file name, before the suffix."""


def cassettes_under(folders: Iterable[Path]) -> list[Path]:
    """Return the cassettes in folders named `cassettes`, at or below `folders`, sorted."""
    found = {
        path.resolve()
        for folder in folders
        for path in (*folder.rglob("*.yaml"), *folder.rglob("*.yml"))
        if FOLDER in path.resolve().parts[:-1] and not _is_hidden(path.relative_to(folder))
    }
    return sorted(found)


def orphans(cassettes: Sequence[Path], used: Iterable[Path]) -> list[Path]:
    """Return the cassettes, with absolute paths, that are not in `used`."""
    wanted = frozenset(path.resolve() for path in used)
    return [path for path in cassettes if path not in wanted]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "site-packages" for part in path.parts)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A new recording: the fingerprint of the request, how often it occurred before, and the exchange."""

    fingerprint: str
    nth: int
    exchange: Exchange


@dataclass(slots=True)
class CassetteState:
    """A run's state for a cassette: whether the file `existed` before the run, and the `digest` of its content.

    `fresh` holds the run's own recordings, which are the last in the file. `rewritten_by` holds the positions of the
    tests that have rewritten their parts.
    """

    existed: bool
    digest: str
    fresh: dict[tuple[str, int], Exchange] = field(default_factory=dict)
    rewritten_by: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Run:
    """A test in a run: its position among all tests, and the positions of the tests that share its cassette.

    All tests in a run share `states`, which maps real paths to the states of the run's cassettes.
    """

    order: int = 0
    sharers: frozenset[int] = frozenset()
    states: dict[str, CassetteState] = field(default_factory=dict)

    def state(self, path: Path) -> CassetteState:
        """Return the run's state for a cassette, which is created on first use."""
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
    """Write a session's recordings into a cassette, after the recordings from earlier tests in the run.

    `rewrites` drops the recordings from before the run once all tests that share the cassette have rewritten their
    parts. `replaces` drops older recordings of the same requests. Raises `BadInput`, and changes nothing, if the file
    cannot be read or written, or if another process has changed it.
    """
    state = run.state(path)
    if _digest(path) != state.digest:
        raise BadInput(
            f"{path}: changed by another process after it was opened, so nothing was recorded; record a "
            "cassette from one run at a time"
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
    """Return the recordings from before the run, without the last `fresh` recordings, which the run wrote."""
    if not path.exists():
        return []
    try:
        exchanges = read(path)
    except BadCassette:
        # Rewriting repairs a damaged cassette.
        if rewrites:
            return []
        raise
    return exchanges[: len(exchanges) - fresh]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
