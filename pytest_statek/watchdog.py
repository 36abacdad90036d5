"""Runs scenario items in a worker process that can be killed. All items in a session share the process."""

from __future__ import annotations

import sys
from functools import partial
from typing import Final

import pytest

from pytest_statek.plan import Plan
from pytest_statek.tokenizers import tokenizers
from statek_sim.suite.run import run_one
from statek_sim.suite.watched import Runner, WatchedRunner

_RUNNER: Final = pytest.StashKey[Runner]()


def runner_of(config: pytest.Config, plan: Plan) -> Runner:
    """Return the session's scenario runner for the reference runtime."""
    if _RUNNER not in config.stash:
        config.stash[_RUNNER] = _runner(config, plan)
    return config.stash[_RUNNER]


def _runner(config: pytest.Config, plan: Plan) -> Runner:
    here = partial(
        run_one,
        preset=plan.preset,
        seed=plan.seed,
        allow_network=plan.allow_network,
        tokenizers=tokenizers(config),
    )
    if plan.watchdog is None or is_looked_into(config):
        return here
    watched = WatchedRunner(here, plan.watchdog, seed=plan.seed)
    config.add_cleanup(watched.close)
    return watched


def is_looked_into(config: pytest.Config) -> bool:
    """Return whether a debugger or coverage tool traces this process. A worker process would not be traced."""
    if config.getoption("usepdb", False) or config.getoption("trace", False) or sys.gettrace() is not None:
        return True
    monitors = getattr(sys, "monitoring", None)  # supported for up to six tools from Python 3.12 on
    return monitors is not None and any(monitors.get_tool(tool) is not None for tool in range(6))
