"""The plugin's entry point. It is loaded in every pytest run, so it must import almost nothing.

Modules that need `statek_sim` are registered as plugins when an option or a fixture requires them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from functools import partial

import pytest

from pytest_statek import hooks, options
from pytest_statek.fallback import fall_back

# Registered by name instead of `pytest_plugins`, for which pytest would read every distribution's entry points again.
from pytest_statek.fixtures import (
    _statek_lab,
    statek_agent,
    statek_app,
    statek_cassette,
    statek_clock,
    statek_guest,
    statek_llm,
    statek_llm_server,
    statek_mcp_server,
    statek_queue,
    statek_runtime,
    statek_seed,
)

__all__ = [
    "_statek_lab",
    "statek_agent",
    "statek_app",
    "statek_cassette",
    "statek_clock",
    "statek_guest",
    "statek_llm",
    "statek_llm_server",
    "statek_mcp_server",
    "statek_queue",
    "statek_runtime",
    "statek_seed",
]

NO_KEY = (
    "If an imported module creates an LLM client, import that module inside the test: statek_llm_server sets the "
    "API key and the base URL during the test."
)
"""The advice if a test file cannot be collected because a client has no API key."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare this plugin's options and ini keys."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that a conftest can implement."""
    pluginmanager.add_hookspecs(hooks)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Make `import statek` find the reference runtime, if requested, before the first conftest imports it."""
    wanted = options.wanted_early(early_config)
    # Imported in the branches, because these modules load statek_sim.
    if wanted == options.REFERENCE:
        from pytest_statek.shadow import stand_in  # noqa: PLC0415

        stand_in(early_config)
    elif wanted is None:
        fall_back(early_config)
    try:
        return (yield)
    except Exception as failure:
        if wanted == options.INSTALLED:
            from pytest_statek.installed import say_what_is_missing  # noqa: PLC0415

            say_what_is_missing(failure)
        raise


def pytest_configure(config: pytest.Config) -> None:
    """Store the options and load the parts of the plugin that they require."""
    config.addinivalue_line("markers", options.MARKER)
    config.addinivalue_line("markers", options.CASSETTE_MARKER)
    config.addinivalue_line("markers", options.REPEAT_MARKER)
    options.check_requested(config)
    requested = config.stash[options.REQUESTED] = options.Requested(config)
    keep_stderr(config)
    if requested.collects or requested.needs_check or requested.backend:
        config.pluginmanager.import_plugin("pytest_statek.scenarios")
    if options.part_is_wanted(config, "gate"):
        config.pluginmanager.import_plugin("pytest_statek.gate")
    if options.part_is_wanted(config, "evals"):
        config.pluginmanager.import_plugin("pytest_statek.evals")


def keep_stderr(config: pytest.Config) -> None:
    """Store a copy of the standard error file descriptor, because pytest captures it while tests run."""
    try:
        kept = config.stash[options.STDERR] = os.dup(2)
    except OSError:
        # There is no standard error.
        return
    config.add_cleanup(partial(os.close, kept))


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Report the backend for `statek_app` if it was not chosen explicitly."""
    if config.stash[options.REQUESTED].backend is not None:
        return []
    if not any("statek_app" in getattr(item, "fixturenames", ()) for item in items):
        return []
    # Imported here, because it loads statek_sim.
    from pytest_statek.installed import chosen_backend  # noqa: PLC0415

    return [f"statek: statek_app runs on {chosen_backend()[1]}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the parts for cassettes and repeated tests only if a test needs them."""
    if options.cassettes_are_wanted(config, items):
        config.pluginmanager.import_plugin("pytest_statek.cassettes")
    if any(item.get_closest_marker(options.REPEAT) for item in items):
        config.pluginmanager.import_plugin("pytest_statek.repeat")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Explain how to import a module that creates an LLM client if collection fails for lack of an API key."""
    report = yield
    if report.failed and re.search(r"(?mi)^E\s.*api[ _]key", str(report.longrepr)):
        report.sections.append(("pytest-statek", NO_KEY))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the fraction of passed runs for each repeated test that passed, including tests run in workers."""
    lines = [
        f"{report.nodeid}: {verdict}"
        for report in terminalreporter.getreports("passed")
        for name, verdict in getattr(report, "user_properties", ())
        if name == options.REPEAT and report.when == "call"
    ]
    if lines:
        terminalreporter.section("repeated tests")
        terminalreporter.line("\n".join(lines))
