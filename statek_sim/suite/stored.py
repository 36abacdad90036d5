"""Runs scenarios on a store, so that a run can outlive its process."""

from __future__ import annotations

import time
from contextlib import closing

from statek_sim.backends.durable import opened_run, resumed_run
from statek_sim.errors import BadInput
from statek_sim.harness.preset import located_preset
from statek_sim.providers.http_provider import Exchanges
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.store.open import open_store
from statek_sim.store.protocol import Lease, Store
from statek_sim.store.worker import real_seconds, worker_name
from statek_sim.suite.result import ScenarioResult
from statek_sim.suite.run import compared, profile_known


def run_stored(
    scenario: Scenario,
    profile: Profile,
    *,
    address: str,
    preset: str | None = None,
    seed: int | None = None,
    exchanges: Exchanges | None = None,
) -> ScenarioResult:
    """Start a run on the store at `address`, or resume the run if the store contains it; return the result."""
    if scenario.engine != "statek":
        raise BadInput(
            f"{scenario.place}: --store is for the statek engine; an agent has its own checkpoints "
            "(`harness: {commits: true}`)"
        )
    if exchanges is not None:
        raise BadInput("--store: recordings are not kept in a store; omit --cassettes")
    behaviour = profile_known(profile)
    located = None if preset is None else located_preset(preset)
    started = time.perf_counter()
    with closing(open_store(address, clock=real_seconds)) as store:
        run = opened_run(store, scenario, behaviour, worker=worker_name(), preset=located, seed=seed)
        record = run.finish()
    return compared(scenario, behaviour, record, seconds=time.perf_counter() - started, preset=preset)


def finish(store: Store, lease: Lease, *, restart: float = 0.0) -> ScenarioResult:
    """Resume a claimed run, finish it and return its result."""
    started = time.perf_counter()
    try:
        run = resumed_run(store, lease, restart=restart)
    except BaseException:
        store.release(lease)
        raise
    record = run.finish()
    scenario, profile = run.run.scenario, profile_known(record.profile)
    return compared(scenario, profile, record, seconds=time.perf_counter() - started)
