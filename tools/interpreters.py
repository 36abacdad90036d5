"""Python versions on this machine, from PATH or pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

NEWER: Final = ("3.12", "3.13", "3.14")
"""Further Python versions that the project is tested on, if installed."""

NEWEST_OF_STATEK: Final = "3.13"
"""The newest version that has a wheel for dbzero, STATEK's store."""


def this_python() -> str:
    """Return the running Python's version, like `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def interpreter(version: str) -> str | None:
    """Return a working Python with that version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next((str(candidate) for candidate in candidates if candidate and works(candidate)), None)


def works(python: str | Path) -> bool:
    """Return whether this interpreter starts; a pyenv shim exists even if its version is disabled."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def newer_python() -> str | None:
    """Return the newest installed Python version above this one that supports STATEK."""
    usable = [version for version in NEWER if _number(version) <= _number(NEWEST_OF_STATEK)]
    above = [version for version in usable if _number(version) > _number(this_python())]
    return next((version for version in reversed(above) if interpreter(version)), None)


def older_patch() -> tuple[str, str] | None:
    """Return the oldest installed patch release of this Python's version, like `3.11.2`, and its interpreter.

    None if there is none older than this one. Distributions keep their initial patch release for years.
    """
    name = f"python{this_python()}"
    folders = dict.fromkeys([*os.get_exec_path(), "/usr/bin", "/usr/local/bin"])
    found = (shutil.which(name, path=folder) for folder in folders)
    releases = {patch: python for python in found if python and (patch := _patch(python))}
    oldest = min(releases, default=sys.version_info[:3])
    return (".".join(map(str, oldest)), releases[oldest]) if oldest < sys.version_info[:3] else None


def _patch(python: str) -> tuple[int, ...]:
    """Return an interpreter's release; empty if it does not work or cannot create environments."""
    asked = "import ensurepip, sys; print(*sys.version_info[:3])"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split()))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
