"""The cassettes in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from statek_sim.errors import BadInput

SUFFIXES: Final = (".yaml", ".yml")
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
