"""Cassettes that no test uses any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = "cassettes"
"""The folder in which pytest-recording and we keep the cassettes of the tests beside it."""


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
