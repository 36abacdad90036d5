"""Functions and classes stay small enough to be read in one go: 61 lines, as simpy's longest function, and 200."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = ("statek_sim", "pytest_statek")
MOST_OF_A_FUNCTION: Final = 61
MOST_OF_A_CLASS: Final = 200

LARGER: Final[Mapping[str, str]] = {
    "agent/batch.py:Batch": "the calls of one turn share where each of them is",
    "agent/run_state.py:RunState": "everything that one run knows: its fields, as values, and as the limits read them",
    "agent/rescue/json_reader.py:JsonReader": "one method per token of one grammar over one position in the text",
    "agent/rescue/call_parser.py:CallParser": "one method per format over one position in the text",
    "agent/simulation.py:Simulation": "what is planned, killed and chosen shares one loop and what is open in it",
    "mcp/connection.py:McpConnection": "what opens streams and tasks has to close them, in the same task",
    "agent/tools/registry.py:Registry": "its methods are the questions that are asked of one table of tools",
    "backends/agent.py:_Run": "a scenario's parts are made, killed, and made again from what was committed",
    "cli/run.py:run": "one line for each of its options, then one for each thing that they ask for",
    "explore/explorer.py:Explorer": "kinds of deviations share what was explored before them",
    "runtime/execution/runtime.py:Runtime": "what a user's program calls: a line or two for each",
    "runtime/execution/scheduler.py:Scheduler": "what begins, ends and dies shares who is ready",
    "runtime/jobs/job.py:Job": "its fields carry STATEK's names, and each is a property of its own",
    "server/http_connection.py:HttpConnection": "what the parser tells of one connection, piece by piece, on one state",
}
"""Classes and functions with more lines, by path and name, and why each is one noun all the same."""


@cache
def definitions(path: Path) -> tuple[tuple[str, ast.stmt], ...]:
    """Return every function and class of a file by name."""
    return tuple(
        (node.name, node)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )


def too_large(source: Path, name: str) -> Iterator[tuple[str, int]]:
    """Yield what has more lines than its kind may have; `name` is the file's."""
    for defined, node in definitions(source):
        lines = (node.end_lineno or 0) - node.lineno + 1
        most = MOST_OF_A_CLASS if isinstance(node, ast.ClassDef) else MOST_OF_A_FUNCTION
        if lines > most:
            yield f"{name}:{defined}", lines


def test_functions_and_classes_are_small_or_say_why_not() -> None:
    found = {
        place: lines
        for package in OURS
        for path in sorted((ROOT / package).rglob("*.py"))
        for place, lines in too_large(path, path.relative_to(ROOT / package).as_posix())
    }
    assert {place: lines for place, lines in found.items() if place not in LARGER} == {}
    assert set(LARGER) - set(found) == set(), "these are small by now: take them off the list"


@pytest.mark.parametrize(("lines", "found"), [(61, []), (62, [("a.py:f", 62)])])
def test_a_function_that_is_too_long_is_found(
    tmp_path: Path, lines: int, found: list[tuple[str, int]]
) -> None:
    source = tmp_path / "a.py"
    source.write_text("def f():\n" + "    pass\n" * (lines - 1))
    assert list(too_large(source, "a.py")) == found


VAGUE: Final = frozenset({"told", "said", "asked"})
"""Participles that say nothing of what a variable holds."""
ELSEWHERE: Final = ("agent/guards", "agent/rescue", "backends", "explore", "store")
"""Parts of `statek_sim` that still have some."""


def vague(path: Path) -> Iterator[int]:
    """Yield the lines on which a function gives a vague name to something; a field is read with what it is of."""
    for _, function in definitions(path):
        if isinstance(function, ast.ClassDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                    yield node.lineno


def test_what_is_named_has_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for package in OURS
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.relative_to(ROOT / package).as_posix().startswith(ELSEWHERE)
        for line in vague(path)
    ]
    assert found == []
