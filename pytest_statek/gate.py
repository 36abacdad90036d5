"""The plugin's gate part, registered only in runs that check presets."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_statek.chosen_options import ChosenOptions
from pytest_statek.gate_collect import GateCollection
from pytest_statek.nodes import AddedNodes
from pytest_statek.options import BUILT_IN, REQUESTED
from statek_sim.errors import BadInput
from statek_sim.executors.limits import WatchdogLimits, parse_watchdog
from statek_sim.gate.baseline import Baseline, baseline_paths, read_baseline
from statek_sim.gate.gate import GatePlan, gate_plan, has_shipped
from statek_sim.suite.run import profile_known

PLAN = pytest.StashKey[GatePlan]()
"""The key in `config.stash` for the gate's options."""


def pytest_configure(config: pytest.Config) -> None:
    """Check the presets and the policy, and register the verdict collector."""
    options = ChosenOptions(config, "gate")
    here, policy = config.invocation_params.dir, options.path("policy")
    # The configured scenarios are judged, by default the scenarios of this run.
    scenarios = options.named("scenarios") or tuple(
        path for path in config.stash[REQUESTED].scenarios if path != BUILT_IN
    )
    # Scenarios are judged under one profile: the first requested one.
    profile = next(iter(config.stash[REQUESTED].profiles), "docs")
    try:
        known = profile_known(profile)
        plan = config.stash[PLAN] = gate_plan(
            options.names,
            policy=None if policy is None else Path(policy),
            folder=here,
            on_shipped=has_shipped(scenarios),
        )
        watchdog = config.stash[REQUESTED].watchdog
        limits = parse_watchdog(watchdog) if watchdog else WatchdogLimits()
        baselines = _baselines(plan, options.path("baseline"), known)
    except BadInput as error:
        raise pytest.UsageError(f"statek: {error}") from None
    gated = GateCollection(plan, scenarios, known, baselines=baselines, watchdog=limits)
    config.pluginmanager.register(AddedNodes(gated.nodes, alone=options.alone), "statek-gate-collection")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return header lines with remarks on the presets; they do not affect the verdict."""
    return [f"statek gate: {remark.place}: {remark.message}" for remark in config.stash[PLAN].remarks]


def _baselines(plan: GatePlan, path: str | None, profile: str) -> dict[str, Baseline]:
    if path is None:
        return {}
    files = baseline_paths(Path(path), [preset.name for preset in plan.presets])
    return {preset: read_baseline(file, profile=profile) for preset, file in files.items()}
