"""Nodes of this plugin among those of others: their names, and how to recognize them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest

from statek_sim.suite.run import builtin_suites

_BUILT_IN: Final = "statek_suites"


def node_id(path: Path, rootpath: Path) -> str:
    """Return a path as in node ids: relative to the project, or to the folder of all suites for a built-in one."""
    if path.is_relative_to(rootpath):
        return path.relative_to(rootpath).as_posix()
    suites = builtin_suites()
    if path.is_relative_to(suites):
        return f"{_BUILT_IN}/{path.relative_to(suites).as_posix()}"
    return Path(os.path.relpath(path, rootpath)).as_posix()


def beside(
    report: pytest.CollectReport,
    collector: pytest.Collector,
    nodes: Callable[[pytest.Session], Iterable[pytest.Item | pytest.Collector]],
    *,
    alone: bool,
) -> pytest.CollectReport:
    """Add nodes to those that the session found itself or, with `alone`, replace all nodes but ours."""
    if isinstance(collector, pytest.Session) and report.passed:
        own = [node for node in report.result if not alone or is_ours(node)]
        report.result = [*own, *nodes(collector)]
    return report


def is_ours(node: object) -> bool:
    """Return whether a node is one of this plugin's, which includes requested scenarios."""
    return type(node).__module__.startswith("pytest_statek.")
