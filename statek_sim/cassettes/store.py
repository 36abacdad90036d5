"""Cassette files on disk: listed by folder, loaded, written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from statek_sim.atomic_files import replace_file
from statek_sim.cassettes.document import read
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.tape import Tape
from statek_sim.errors import BadInput
from statek_sim.input_files import why_unreadable

LONGEST_NAME: Final = 255
"""Bytes of a file name on common file systems."""


def load(path: Path, matching: Matching) -> Tape:
    """Return the recordings of a cassette; `BadCassette` when it is none."""
    return tape_of(read(path), matching)


def tape_of(exchanges: Sequence[Exchange], matching: Matching) -> Tape:
    """Return exchanges as a tape."""
    return Tape([matching.fingerprint(exchange.request) for exchange in exchanges], exchanges)


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
    """Write a cassette; the exchanges must hold no secrets (`redaction.redacted`). `BadInput` if it is impossible."""
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


SUFFIXES: Final = (".yaml", ".yml")
FOLDER: Final = "cassettes"
"""The folder in which pytest-recording and we keep the cassettes of the tests beside it."""
ASIDE: Final = ".new"
"""What a failed re-recording left beside a cassette ends so, before its suffix."""


def cassettes_under(folders: Iterable[Path]) -> list[Path]:
    """Return the cassettes in folders called `cassettes`, at and under these folders, in order."""
    found = {
        path.resolve()
        for folder in folders
        for path in (*folder.rglob("*.yaml"), *folder.rglob("*.yml"))
        if FOLDER in path.resolve().parts[:-1] and not _is_hidden(path.relative_to(folder))
    }
    return sorted(found)


def orphans(cassettes: Sequence[Path], used: Iterable[Path]) -> list[Path]:
    """Return the cassettes that are not among the used ones; paths are absolute."""
    wanted = frozenset(path.resolve() for path in used)
    return [path for path in cassettes if path not in wanted]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "site-packages" for part in path.parts)
