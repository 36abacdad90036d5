"""Cassette files: those in a folder, and those that no test uses any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from statek_sim.errors import BadInput

SUFFIXES: Final = (".yaml", ".yml")
FOLDER: Final = "cassettes"
"""The folder in which pytest-recording and we keep the cassettes of the tests beside it."""
ASIDE: Final = ".new"
"""What a failed re-recording left beside a cassette ends so, before its suffix."""


def cassette_files(path: Path) -> list[Path]:
    """Return a cassette, or those at any depth of a folder, in order; `BadInput` when there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(f"{path}: there is no such file or folder")
    found = sorted(
        file for file in path.rglob("*") if file.suffix in SUFFIXES and not file.stem.endswith(ASIDE)
    )
    if not found:
        raise BadInput(f"{path}: no cassettes in this folder, expected {' or '.join(SUFFIXES)} files")
    return found


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
