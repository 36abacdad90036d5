"""Cassette files on disk: loaded by way of an index, written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
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
from statek_sim.whole_files import replace_file

LONGEST_NAME: Final = 255
"""Bytes of a file name on common file systems."""


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
    """Write a cassette; the exchanges must be clean: `scrub.scrubbed` comes before. `BadInput` if it is impossible."""
    write_text(path, rendered(exchanges))


def write_text(path: Path, text: str) -> None:
    """Write the text of a cassette: a reader, and a crash at any moment, see the old file or the new one.

    Where a link leads is written, and it keeps its permissions. `BadInput` if it is impossible.
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
