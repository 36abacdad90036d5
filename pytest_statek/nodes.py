"""The base class for this plugin's test items, and the code that adds the plugin's nodes to a pytest session."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from statek_sim.errors import BadInput
from statek_sim.suite.run import builtin_suites

_BUILT_IN: Final = "statek_suites"


class ItemFailed(Exception):
    """Raised when a test item fails; pytest prints the message instead of a traceback."""


class StatekItem(pytest.Item):
    """The base class for test items, marked `statek`. Failures are printed as text, bugs with a traceback."""

    def __init__(self, *, name: str, parent: pytest.Collector, **node: Any) -> None:
        # Any: pytest's own arguments, passed through as its documentation of custom nodes does.
        # The full id: with the name alone, pytest 9.2 would take a bracket for a parameter, and `--lf` would not find
        # the item again.
        super().__init__(name=name, parent=parent, nodeid=f"{parent.nodeid}::{name}", **node)
        self.add_marker("statek")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the message of an `ItemFailed` or `BadInput`, or pytest's traceback for any other error."""
        # Any: pytest's own types of traceback and style are not public.
        if isinstance(excinfo.value, ItemFailed | BadInput):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


def node_id(path: Path, rootpath: Path) -> str:
    """Return a path for a node id: relative to the project or the built-in suites' folder."""
    if path.is_relative_to(rootpath):
        return path.relative_to(rootpath).as_posix()
    suites = builtin_suites()
    if path.is_relative_to(suites):
        return f"{_BUILT_IN}/{path.relative_to(suites).as_posix()}"
    return Path(os.path.relpath(path, rootpath)).as_posix()


class AddedNodes:
    """Adds nodes to those that the session found. If `alone` is set, only this plugin's nodes are kept."""

    def __init__(
        self, nodes: Callable[[pytest.Session], Iterable[pytest.Item | pytest.Collector]], *, alone: bool
    ) -> None:
        self._nodes = nodes
        self._alone = alone

    # First, and so the outermost wrapper: the report already has the requested scenarios.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the nodes to the session."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            own = [node for node in report.result if not self._alone or is_ours(node)]
            report.result = [*own, *self._nodes(collector)]
        return report


def is_ours(node: object) -> bool:
    """Return whether a node belongs to this plugin."""
    return type(node).__module__.startswith("pytest_statek.")
