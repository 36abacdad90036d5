"""Nodes of this plugin among those of others: how they are named, and which they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from statek_sim.suite.run import builtin_suites

_BUILT_IN: Final = "statek_suites"


def node_id(path: Path, rootpath: Path) -> str:
    """Return a path as node ids say it: relative to the project, or for a built-in suite to all suites."""
    if path.is_relative_to(rootpath):
        return path.relative_to(rootpath).as_posix()
    suites = builtin_suites()
    if path.is_relative_to(suites):
        return f"{_BUILT_IN}/{path.relative_to(suites).as_posix()}"
    return Path(os.path.relpath(path, rootpath)).as_posix()


def is_ours(node: object) -> bool:
    """Return whether a node is one of this plugin's, as scenarios are that were asked for as well."""
    return type(node).__module__.startswith("pytest_statek.")
