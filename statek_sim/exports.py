"""Lazy exports: a public name's module is imported when the name is first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a package or module, from its imports under `if TYPE_CHECKING`.

    A name is exported if it is imported under its own name: `from module import Name as Name`. It must not be the name
    of a submodule, because importing the submodule would replace it.
    """
    # From the file, not from its loader: pytest's loader, which rewrites assertions, provides no source.
    source = Path(str(sys.modules[package].__file__)).read_text("utf-8")
    home_of = {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if alias.asname == alias.name
    }

    def load(name: str) -> Any:
        """Import a public name's module and return the object."""
        module = home_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module), name)

    def listed() -> list[str]:
        """Return all of the package's names, including those not loaded yet."""
        return sorted({*vars(sys.modules[package]), *home_of})

    return sorted(home_of), load, listed
