"""Cassette files on disk: loaded by way of an index, written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from statek_sim.cassettes.document import parse, source_of
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.index import LEAST_SIZE, index_path, indexed, write_index
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.tape import Tape
from statek_sim.errors import BadInput
from statek_sim.unreadable import why_unreadable

LONGEST_NAME: Final = 255
"""Bytes of a file name on common file systems."""
_OLD: Final = 3_600
"""Seconds after which nobody writes a draft any more."""


def load(path: Path, matching: Matching, *, index_folder: Path | None = None) -> Tape:
    """Return the recordings of a cassette; `BadCassette` when it is none.

    A large one is read once; its index in `index_folder`, if that is given, serves until the file changes.
    """
    source = source_of(path)
    place = index_path(index_folder, path) if index_folder and len(source) >= LEAST_SIZE else None
    known = indexed(place, source, matching) if place else None
    if known is not None:
        return known
    exchanges = parse(source, path)
    tape = tape_of(exchanges, matching)
    if place:
        write_index(place, source, matching, tape.fingerprints, exchanges)
    return tape


def tape_of(exchanges: Sequence[Exchange], matching: Matching) -> Tape:
    """Return exchanges as a tape."""
    return Tape([matching.fingerprint(exchange.request) for exchange in exchanges], exchanges.__getitem__)


def check_writable(path: Path) -> None:
    """Let a cassette pass that can be written; `BadInput` before anything is asked that could not be kept."""
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise BadInput(
            f"{path}: the name has more than {LONGEST_NAME} bytes; give the cassette a shorter one"
        )
    try:
        above = next(folder for folder in Path(os.path.realpath(path)).parents if os.path.lexists(folder))
        if not above.is_dir():
            raise BadInput(f"{above}: expected a folder for cassettes, it is a file")
        if not os.access(above, os.W_OK | os.X_OK):
            raise BadInput(
                f"{above}: the folder cannot be written, so that {path.name} could not be recorded"
            )
        if path.is_dir():
            raise BadInput(f"{path}: expected a cassette, it is a folder")
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: expected a cassette, it is a device, pipe or socket")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be a cassette: {error}") from None


def check_changeable(path: Path) -> None:
    """Let a cassette pass that is no read-only file: who made it so does not want it replaced."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from None
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(f"{path}: it is read-only, so nothing is recorded into it; chmod u+w allows it")


def write(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write a cassette: a reader, and a crash at any moment, see the old file or the new one. `BadInput` if impossible.

    Where a link leads is written, and it keeps its permissions. The exchanges must be clean: `scrub.scrubbed` comes
    before.
    """
    draft = None
    # Before anything of the old one is touched.
    text = rendered(exchanges)
    try:
        check_writable(path)
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        drafts = f".{blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}."
        if target.exists():
            check_changeable(target)
        # A name that no other container takes, whose processes may have the same numbers.
        draft = target.with_name(f"{drafts}{os.urandom(8).hex()}.tmp")
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _remove_old(drafts, draft)
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except OSError as error:
        raise BadInput(f"{path}: cannot write the cassette: {error.strerror or error}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _remove_old(drafts: str, mine: Path) -> None:
    """Remove drafts of a cassette whose writers were killed long ago, by the clock of the disk that `mine` is on."""
    now = mine.stat().st_mtime
    for draft in mine.parent.glob(f"{drafts}*.tmp"):
        with suppress(OSError):
            if now - draft.lstat().st_mtime > _OLD:
                draft.unlink()
