"""Where statek is not installed, `import statek` finds the reference runtime: brought in by the first such import.

This module is loaded in every pytest run, so it imports nothing but pytest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest


class Fallback:
    """The last finder: asked for what nothing else finds, it puts the stand-ins in place of `statek` and `dbzero`."""

    used = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in for the two packages, when neither of them is installed."""
        if fullname not in ("statek", "dbzero") or _is_there("dbzero" if fullname == "statek" else "statek"):
            return None
        # Only now: it brings statek_sim in.
        from statek_sim.shim.covered_names import StandIns  # noqa: PLC0415

        stand_ins = StandIns()
        stand_ins.install()
        self.used = True
        self._stand_ins = stand_ins
        return stand_ins.find_spec(fullname, path, target)

    def remove(self) -> None:
        """Take the stand-ins away, and this finder with them."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self.used:
            self._stand_ins.remove()


def _is_there(name: str) -> bool:
    """Return whether a package can be found without this finder's help."""
    return any(
        finder.find_spec(name, None) is not None
        for finder in sys.meta_path
        if not isinstance(finder, Fallback) and hasattr(finder, "find_spec")
    )


FALLBACK: pytest.StashKey[Fallback] = pytest.StashKey()
"""Where `config.stash` keeps it; nowhere when a backend was asked for."""


def fall_back(config: pytest.Config) -> None:
    """Have the reference runtime found where nothing else is, until the run ends."""
    fallback = config.stash[FALLBACK] = Fallback()
    sys.meta_path.append(fallback)
    config.add_cleanup(fallback.remove)
