"""What the packages import is what the project declares, and the other way round."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = ("pytest_statek", "statek_sim")
FOREIGN: Final = {"dbzero", "statek"}
"""The package under imitation and its store: whoever chooses the `installed` backend has it."""


def imported() -> set[str]:
    """Return the names of all modules outside the standard library that our packages import."""
    names: set[str] = set()
    for path in (path for package in OURS for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(OURS)


def declared() -> set[str]:
    """Return the distributions that an installation of ours brings along."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in project["dependencies"]}


def test_every_import_is_declared_and_every_declaration_is_imported() -> None:
    homes = packages_distributions()
    needed = {homes[name][0].lower().replace("_", "-") for name in imported() - FOREIGN}
    # pydantic-core and click come with what we declare, and their names belong to its interface.
    assert needed - {"click", "pydantic-core"} == declared()


def test_the_real_statek_is_no_dependency() -> None:
    assert declared().isdisjoint(FOREIGN)
