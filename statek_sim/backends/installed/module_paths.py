"""Where this process finds modules, for another interpreter that must find the same ones."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def module_paths() -> tuple[str, ...]:
    """Return the absolute folders of `sys.path`, in order, and the current one.

    Those of the interpreter itself, its standard library and its installed packages, are left out: another one has its
    own.
    """
    own = tuple(_own_folders())
    folders = dict.fromkeys(os.path.abspath(entry) for entry in (*sys.path, ""))
    return tuple(
        folder for folder in folders if not any(Path(folder).is_relative_to(own_folder) for own_folder in own)
    )


def _own_folders() -> Iterator[str]:
    """Yield the folders, and the archive, that belong to this interpreter."""
    for kind in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(kind)
    yield from site.getsitepackages()
    yield site.getusersitepackages()
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    yield os.path.join(sys.base_prefix, sys.platlibdir, zipped)
