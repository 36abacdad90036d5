"""The scenarios that presets are judged on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites

SHIPPED: Final = "built-in"
"""What the shipped workloads are called where a path is expected."""

_SUITE: Final = "workloads"


def has_shipped(paths: Sequence[str]) -> bool:
    """Return whether the shipped workloads are among what `workloads(paths)` returns."""
    return not paths or SHIPPED in paths


def workloads(paths: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios in these files and folders, or the shipped workloads where `SHIPPED` or nothing is said.

    Raises `BadScenario` with one `path:line: message` per problem.
    """
    shipped = builtin_suites() / _SUITE
    return load_or_fail([shipped if path == SHIPPED else Path(path) for path in paths or (SHIPPED,)])
