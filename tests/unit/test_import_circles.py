"""No module of ours imports itself again through others, not even for type checkers alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.tables import table_test

ROOT: Final = Path(__file__).resolve().parents[2]


def imports(package: str) -> dict[str, set[str]]:
    """Return what each module of a package imports of it, anywhere in the file."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / package).rglob("*.py")
    }
    found: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                wanted = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
                found[name] |= wanted & set(paths) - {name}
    return found


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


@table_test(
    "package",
    [
        "pytest_statek",
        *(
            f"statek_sim/{name}"
            for name in (
                *(
                    "analysis",
                    "backends",
                    "cassettes",
                    "cli",
                    "compare",
                    "conformance",
                    "executors",
                    "gate",
                    "harness",
                ),
                *(
                    "usage",
                    "providers",
                    "reporting",
                    "runtime",
                    "sandbox",
                    "scenario",
                    "server",
                    "stand_in",
                ),
                *("suite", "world"),
            )
        ),
    ],
)
def test_modules_of_a_package_import_one_way(package: str) -> None:
    assert circles(imports(package)) == set()
