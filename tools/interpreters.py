"""Versions of Python on this machine, from the search path or from pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

NEWER: Final = ("3.12", "3.13", "3.14")
"""Versions of Python that the project is tested on beside the one that runs this, where they are installed."""

NEWEST_OF_STATEK: Final = "3.13"
"""The newest of these that dbzero, STATEK's store, has a wheel for."""


def this_python() -> str:
    """Return the version of the Python that runs this, like `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def interpreter(version: str) -> str | None:
    """Return a Python of that version that works, or None when there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    return next((str(candidate) for candidate in candidates if candidate and works(candidate)), None)


def works(python: str | Path) -> bool:
    """Return whether this interpreter starts; a shim of pyenv is there even while its version is switched off."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def newer_python() -> str | None:
    """Return the newest version of Python above this one that is installed and that STATEK can be installed on."""
    usable = [version for version in NEWER if _number(version) <= _number(NEWEST_OF_STATEK)]
    above = [version for version in usable if _number(version) > _number(this_python())]
    return next((version for version in reversed(above) if interpreter(version)), None)


def older_patch() -> tuple[str, str] | None:
    """Return the oldest patch release of this Python's version that is installed, like `3.11.2`, and its interpreter.

    None where there is none older than this one. Distributions keep the one that they began with for years.
    """
    name = f"python{this_python()}"
    folders = dict.fromkeys([*os.get_exec_path(), "/usr/bin", "/usr/local/bin"])
    found = (shutil.which(name, path=folder) for folder in folders)
    releases = {patch: python for python in found if python and (patch := _patch(python))}
    oldest = min(releases, default=sys.version_info[:3])
    return (".".join(map(str, oldest)), releases[oldest]) if oldest < sys.version_info[:3] else None


def _patch(python: str) -> tuple[int, ...]:
    """Return an interpreter's release, nothing for one that does not work, or is without what makes environments."""
    asked = "import ensurepip, sys; print(*sys.version_info[:3])"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split()))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
