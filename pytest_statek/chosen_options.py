"""What was asked of the gate or of evals, on the command line and in the configuration file.

`--statek-gate` and `statek_gate` ask for the part `gate`; `statek_gate_policy` and the other keys say how.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


class ChosenOptions:
    """What was said of one part. Paths start where pytest was called, those of the configuration file at its folder.

    `given`: there are arguments that may be paths of tests, so that the configuration file's list of what to run does
    not count. `alone`: nothing but what this plugin collects is to run. `names`: what was asked for, paths as people
    read them.
    """

    __slots__ = ("_config", "_here", "_part", "_there", "alone", "given", "names")

    def __init__(self, config: pytest.Config, part: str) -> None:
        self._config = config
        self._part = part
        self._here = config.invocation_params.dir
        self._there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, by version, when pytest only prints its help.
        self.given: list[str] = config.getoption("file_or_dir", None) or []
        requested: list[str] = config.getoption(f"statek_{part}")
        self.alone = bool(requested) and not self.given
        written = [] if self.given else self._key(None)
        self.names = self._found(requested, self._here) or self._found(written, self._there)

    def text(self, name: str) -> str | None:
        """Return the text of a key."""
        return self._key(name) or None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of a key that has several."""
        return tuple(self._key(name))

    def path(self, name: str) -> str | None:
        """Return the path of a key, as people read it."""
        return path_from(self._key(name), self._there, self._here)

    def name(self, name: str) -> str | None:
        """Return what a key names: a path where there is something at it, else the text."""
        return found(text, self._there, self._here) if (text := self.text(name)) else None

    def named(self, name: str) -> tuple[str, ...]:
        """Return what a key names that has several, as `name` does each."""
        return self._found(self._key(name), self._there)

    def _found(self, texts: Sequence[str], base: Path) -> tuple[str, ...]:
        return tuple([found(text, base, self._here) for text in texts])

    # Any: a text or a list of texts, as the key was declared.
    def _key(self, name: str | None) -> Any:
        return self._config.getini("_".join(filter(None, ("statek", self._part, name))))


def found(text: str, base: Path, here: Path) -> str:
    """Return a path that starts at `base` as people read it from `here` where there is something at it.

    Else it is the text: a built-in name.
    """
    return (path_from(text, base, here) or text) if os.path.exists(base / text) else text


def path_from(text: str | None, base: Path, here: Path) -> str | None:
    """Return a path that starts at `base` as people read it from `here`; None for no text."""
    if not text:
        return None
    path = Path(os.path.normpath(base / text))
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
