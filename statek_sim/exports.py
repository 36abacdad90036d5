"""Names that a package exports without loading their modules: each is imported at its first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package that exports names of the modules in `homes`.

    `homes` maps a module's full name to the names exported from it. None may be called as a submodule of the package:
    importing that submodule would put it in the name's place.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        """Load a public name from its module."""
        module = home_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module), name)

    def listed() -> list[str]:
        """Return the names of the package, loaded or not."""
        return sorted({*vars(sys.modules[package]), *home_of})

    return sorted(home_of), load, listed
