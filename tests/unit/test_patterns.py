"""Patterns mean the same on every Python that may run them.

Before 3.11.5 a possessive group went on behind what its last attempt had read, although that attempt failed (CPython's
gh-106052). So a group of ours is possessive only where no failed attempt has read on: its alternatives are plain
characters, or the last of them is a run of one class, which is tried from where the group stands. Atomic groups are
not used: the same mistake was in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from re import _constants as ops  # type: ignore[attr-defined]  # the parser has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tests.tables import table_test

COLLECT = """
import importlib, json, pkgutil, re, sys
import pytest_statek, statek_sim
compiled, real = set(), re.compile
def compile(pattern, flags=0):
    if "statek" in sys._getframe(1).f_globals.get("__name__", "") and isinstance(pattern, str):
        compiled.add((pattern, int(flags)))
    return real(pattern, flags)
re.compile = compile
for package in (statek_sim, pytest_statek):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            module.name.endswith("__main__") or importlib.import_module(module.name)
        except ImportError:
            pass  # of the real STATEK's environment, or an extra's
print(json.dumps(sorted(compiled)))
"""
ONE = {ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN}
RUNS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}


def test_no_group_is_possessive_whose_failures_older_pythons_read_on_from() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=True)
    patterns = json.loads(done.stdout)
    assert len(patterns) > 200, "patterns are not found any more"
    wrong = [pattern for pattern, flags in patterns if not all(map(_safe, _possessive(pattern, flags)))]
    assert wrong == [], "possessive groups that Python 3.11.2 reads otherwise"


@table_test(
    "pattern",
    [
        r"(?:[^b]++|b(?!x))*+",
        r"(?:a(?:bc)?)++",
        r"(?:[ -]\w{1,40}+){0,7}+",
        r"(?:\#\w*+\n|[ \t])*+",
        r"(?>a|b)c",
    ],
)
def test_what_older_pythons_read_on_from_is_found(pattern: str) -> None:
    assert not all(map(_safe, _possessive(pattern, 0)))


@table_test("pattern", [r"(?:b(?!x)|[^b]++)*+", r"(?:\s|\\n)*+", r"(?:[^\"\\]++|\\.)*+", r"\s*+x", r"a"])
def test_what_no_python_reads_on_from_is_not(pattern: str) -> None:
    assert all(map(_safe, _possessive(pattern, 0)))


def _possessive(pattern: str, flags: int) -> list[Any]:
    """Return the parsed bodies of possessive repetitions and atomic groups; None stands for one of the latter."""
    found: list[Any] = []
    rest: list[Any] = [parser.parse(pattern, flags)]
    while rest:
        part = rest.pop()
        if isinstance(part, parser.SubPattern):
            found += [
                None if op is ops.ATOMIC_GROUP else value[2]
                for op, value in part
                if op in (ops.ATOMIC_GROUP, ops.POSSESSIVE_REPEAT)
            ]
            rest += [value for _, value in part]
        elif isinstance(part, list | tuple):
            rest += part
    return found


def _safe(body: Any) -> bool:
    if body is None:
        return False
    operation, value = body[0]
    if operation is ops.BRANCH and len(body) == 1:
        alternatives = value[1]
        return _is_run(alternatives[-1]) or all(_is_run(one) or _reads_nothing(one) for one in alternatives)
    return _reads_nothing(body)


def _is_run(body: Any) -> bool:
    return len(body) == 1 and body[0][0] in RUNS and len(body[0][1][2]) == 1 and body[0][1][2][0][0] in ONE


def _reads_nothing(body: Any) -> bool:
    """Whether a failed attempt leaves the position alone: single characters are compared where they are."""
    return all(operation in ONE for operation, _ in body)
