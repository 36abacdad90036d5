"""How the gate names files: the same on every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def shown_path(path: Path) -> Path:
    """Return `path` as it was given; a file of this package from the package's name on."""
    return path.relative_to(_PACKAGE.parent) if path.is_relative_to(_PACKAGE) else path
