"""The plugin's scenario part, registered only in runs that request it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_statek.collect import ScenarioCollection
from pytest_statek.item import ScenarioItem
from pytest_statek.options import REQUESTED
from pytest_statek.plan import PLAN, checked
from pytest_statek.summary import RESULTS, ScenarioSummary, attach


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and register the scenario collector and the summary."""
    requested = config.stash[REQUESTED]
    plan = config.stash[PLAN] = checked(requested, here=config.invocation_params.dir)
    if requested.collects:
        _find_modules_in(config, config.rootpath)
        _find_modules_in(config, config.invocation_params.dir)
        results = config.stash[RESULTS] = {}
        config.pluginmanager.register(ScenarioCollection(plan), "statek-collection")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(ScenarioSummary(plan, results, config), "statek-summary")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return a header line if scenarios run on the installed package."""
    installed = config.stash[PLAN].installed
    return (
        [] if installed is None else [f"statek: scenarios and applications run on the installed {installed}"]
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store a scenario's result, or send it to the process that prints the summary, unless it failed as expected."""
    report = yield
    if (
        call.when == "call"
        and isinstance(item, ScenarioItem)
        and item.result is not None
        and not hasattr(report, "wasxfail")
    ):
        if hasattr(item.config, "workerinput"):
            attach(report, item.result)
        else:
            item.config.stash[RESULTS][item.result.id] = item.result
    return report


def _find_modules_in(config: pytest.Config, folder: Path) -> None:
    """Let scenarios use tools from modules in this folder for the rest of the run."""
    place = str(folder)

    def forget() -> None:
        if place in sys.path:
            sys.path.remove(place)

    if place not in sys.path:
        # Put first, as `python -m pytest` and `statek-sim` do, so that a name means the same module in each.
        sys.path.insert(0, place)
        config.add_cleanup(forget)
