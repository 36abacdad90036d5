"""The entry point of the plugin. Loaded in every pytest run, so it costs next to nothing until it is used.

Whatever needs `statek_sim` is in modules that are registered as plugins of their own when an option or a fixture
asks for them: `scenarios` and `lab`.
"""

from __future__ import annotations

import pytest

from pytest_statek import hooks

# By name and not as `pytest_plugins`: for that, pytest would read every installed distribution's entry points again.
from pytest_statek.fixtures import _statek_lab, statek_clock, statek_llm, statek_queue, statek_runtime
from pytest_statek.options import MARKER, REQUESTED, Requested, add_options

__all__ = ["_statek_lab", "statek_clock", "statek_llm", "statek_queue", "statek_runtime"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--statek-*` and their ini keys."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that a conftest may implement."""
    pluginmanager.add_hookspecs(hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Note what is asked for; load the scenario part only for those who want it."""
    config.addinivalue_line("markers", MARKER)
    asked = config.stash[REQUESTED] = Requested(config)
    if asked.collects or asked.needs_check or asked.backend:
        config.pluginmanager.import_plugin("pytest_statek.scenarios")
