"""The requested gate or evals options, from the command line and the configuration file.

`--statek-gate` and `statek_gate` request the `gate` part; `statek_gate_policy` and the other keys are its settings.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


class ChosenOptions:
    """The options for one part of the plugin: `gate` or `evals`.

    Paths are relative to pytest's working folder or the configuration file's folder.

    `given` are pytest's own arguments, such as test paths; if there are any, the configuration file's list of presets
    or evals is ignored. If `alone` is set, only this plugin's nodes run. `names` are the requested presets or evals,
    with paths in display form.
    """

    def __init__(self, config: pytest.Config, part: str) -> None:
        self._config = config
        self._part = part
        self._here = config.invocation_params.dir
        self._there = config.rootpath if config.inipath is None else config.inipath.parent
        # Absent or None, depending on the version, if pytest only prints its help.
        self.given: list[str] = config.getoption("file_or_dir", None) or []
        requested: list[str] = config.getoption(f"statek_{part}")
        self.alone = bool(requested) and not self.given
        written = [] if self.given else self._key(None)
        self.names = self._found(requested, self._here) or self._found(written, self._there)

    def text(self, name: str) -> str | None:
        """Return a key's string value, or None."""
        return self._key(name) or None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a key's list of values."""
        return tuple(self._key(name))

    def path(self, name: str) -> str | None:
        """Return a key's value as a path in display form, or None."""
        return path_from(self._key(name), self._there, self._here)

    def name(self, name: str) -> str | None:
        """Return a key's value as a path if it exists, or else as text."""
        return found(text, self._there, self._here) if (text := self.text(name)) else None

    def named(self, name: str) -> tuple[str, ...]:
        """Return a key's list of values, each converted as in `name`."""
        return self._found(self._key(name), self._there)

    def _found(self, texts: Sequence[str], base: Path) -> tuple[str, ...]:
        return tuple([found(text, base, self._here) for text in texts])

    # Any: a string or a list of strings, as the key was declared.
    def _key(self, name: str | None) -> Any:
        return self._config.getini("_".join(filter(None, ("statek", self._part, name))))


def found(text: str, base: Path, here: Path) -> str:
    """Return the path `text` like `path_from` if it exists.

    Otherwise, return `text` unchanged: it is a built-in name.
    """
    return (path_from(text, base, here) or text) if os.path.exists(base / text) else text


def path_from(text: str | None, base: Path, here: Path) -> str | None:
    """Convert the path `text`, relative to `base`, to one relative to `here`, if possible; None if there is no text."""
    if not text:
        return None
    path = Path(os.path.normpath(base / text))
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
