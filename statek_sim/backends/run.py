"""Runs a scenario on the engine named in the scenario."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from statek_sim.backends.record import RunRecord
from statek_sim.backends.reference import run_reference_scenario
from statek_sim.backends.setup import RunOptions
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.http_provider import Exchanges
from statek_sim.scenario.schema import Scenario
from statek_sim.semantics import Profile
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model
from statek_sim.values import unchanged


def run_scenario(
    scenario: Scenario,
    profile: str | Profile,
    *,
    preset: str | None = None,
    seed: int | None = None,
    allow_network: bool = False,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
    harness: Callable[[LLM_Harness], LLM_Harness] = unchanged,
) -> RunRecord:
    """Run one scenario under one profile on its engine, and return the record.

    For the arguments see `RunOptions`; for errors, `run_reference_scenario` and `run_agent_scenario`.
    """
    options = RunOptions(
        preset=preset,
        seed=seed,
        allow_network=allow_network,
        tokenizers=tokenizers,
        exchanges=exchanges,
        harness=harness,
    )
    if scenario.engine == "statek":
        return run_reference_scenario(scenario, profile, options)
    # Its argument checks are loaded only for engine two scenarios.
    from statek_sim.backends.agent import run_agent_scenario  # noqa: PLC0415

    return run_agent_scenario(scenario, str(profile), options)


def load_for(scenarios: Iterable[Scenario]) -> None:
    """Import the slow modules that these scenarios need, such as engine two, and load the vocabularies of their models.

    Call it before forking workers; otherwise each worker would import them again.
    """
    engines: set[str] = set()
    models: set[str] = set()
    for scenario in scenarios:
        engines.add(scenario.engine)
        models.update(agent.model for agent in scenario.agents.values())
    if "agent" in engines:
        importlib.import_module("statek_sim.backends.agent")
    for tokenizer in {
        tokenizer_for_model(model).name: tokenizer_for_model(model) for model in models
    }.values():
        tokenizer.tokenizer.count(" ")
