"""Modules that docstrings name are there: a reader follows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.tables import table_test

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = ("statek_sim", "pytest_statek")
OTHERS: Final = {"statek", "dbzero", "import"}
"""Names in backticks that are not ours."""


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield every docstring of ours, with its place."""
    for path in sorted(path for package in OURS for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module of ours, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            for part in parts[length:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def test_dotted_names_of_ours_resolve() -> None:
    packages = {path.parent.name for path in (ROOT / "statek_sim").glob("*/__init__.py")}
    wrong = []
    for place, text in docstrings():
        for name in re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_]\w*)`", text):
            first = name.partition(".")[0]
            whole = name if first in OURS else f"statek_sim.{name}"
            # Some words are packages of ours and something else as well: `suite.yaml`.
            is_a_file = re.search(r"\.(py|yaml|toml|json|md|env|html|txt)$", name)
            if (first in OURS or first in packages) and not is_a_file and not resolves(whole):
                wrong.append(f"{place}: {name}")
    assert wrong == []


@table_test("package", sorted(path for path in (ROOT / "statek_sim").rglob("__init__.py")))
def test_a_package_says_only_names_of_modules_that_it_has(package: Path) -> None:
    text = ast.get_docstring(ast.parse(package.read_text("utf-8"))) or ""
    said = set(re.findall(r"`([a-z_]+)`", text)) - OTHERS
    modules = {path.stem for path in package.parent.rglob("*.py")} | {
        path.parent.name for path in package.parent.rglob("__init__.py")
    }
    assert said <= modules
