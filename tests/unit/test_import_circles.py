"""No module of ours imports itself again through others, not even for type checkers alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.tables import table_test

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("pytest_statek", "statek_sim")


def imports(package: str) -> dict[str, set[str]]:
    """Return what each module of a package imports of it, anywhere in the file."""
    paths = {_module(path): path for path in (ROOT / package).rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                wanted = {f"{node.module}.{alias.name}" for alias in node.names}
                # A name that is no module is the package's own.
                found[name] |= {one if one in paths else node.module for one in wanted} & set(paths) - {name}
    return found


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: dict[str, set[str]]) -> set[str]:
    """Return the modules that are in a circle, or between two: what is left when leaves and roots are taken off."""
    left = {name: set(wanted) for name, wanted in graph.items()}
    while True:
        imported = set().union(*left.values()) if left else set()
        ends = {name for name, wanted in left.items() if not wanted or name not in imported}
        if not ends:
            return set(left)
        left = {name: wanted - ends for name, wanted in left.items() if name not in ends}


def test_a_circle_is_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set[str]()}
    assert circles(graph) == {"b", "c"}


@table_test("package", PACKAGES)
def test_modules_import_one_way(package: str) -> None:
    assert circles(imports(package)) == set()
