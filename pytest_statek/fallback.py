"""Lets `import statek` find the reference runtime if statek is not installed. The runtime is loaded on first import.

This module is loaded in every pytest run, so it imports only pytest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest


class Fallback:
    """The last finder in Python's import system, which installs the `statek` and `dbzero` shims if needed."""

    used = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the shim's spec for either of the two packages, if neither is installed."""
        if fullname not in ("statek", "dbzero") or _is_there("dbzero" if fullname == "statek" else "statek"):
            return None
        # Imported only now: it loads statek_sim.
        from statek_sim.shim.covered_names import StandIns  # noqa: PLC0415

        stand_ins = StandIns()
        stand_ins.install()
        self.used = True
        self._stand_ins = stand_ins
        return stand_ins.find_spec(fullname, path, target)

    def remove(self) -> None:
        """Remove this finder and its shims."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self.used:
            self._stand_ins.remove()


def _is_there(name: str) -> bool:
    """Return whether a package can be found without this finder."""
    return any(
        finder.find_spec(name, None) is not None
        for finder in sys.meta_path
        if not isinstance(finder, Fallback) and hasattr(finder, "find_spec")
    )


FALLBACK: pytest.StashKey[Fallback] = pytest.StashKey()
"""The key in `config.stash` for the finder; not set if a backend was requested."""


def fall_back(config: pytest.Config) -> None:
    """Let imports fall back to the reference runtime for the rest of the run."""
    fallback = config.stash[FALLBACK] = Fallback()
    sys.meta_path.append(fallback)
    config.add_cleanup(fallback.remove)
