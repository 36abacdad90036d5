"""Running a scenario on the engine it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from statek_sim.backends import reference
from statek_sim.backends.exchanges import Exchanges
from statek_sim.backends.record import RunRecord
from statek_sim.backends.reference import unchanged
from statek_sim.harness.harness import LLM_Harness
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model


class _RunScenario(Protocol):
    """What either engine offers."""

    def __call__(
        self,
        scenario: Scenario,
        profile: str,
        /,
        *,
        preset: str | None,
        seed: int | None,
        allow_network: bool,
        tokenizers: TokenizerRegistry | None,
        exchanges: Exchanges | None,
        harness: Callable[[LLM_Harness], LLM_Harness],
    ) -> RunRecord:
        """Run one scenario."""


def _agent() -> _RunScenario:
    """Return engine two; its checks of arguments are not loaded for those who have no scenario of it."""
    from statek_sim.backends.agent import run_agent_scenario  # noqa: PLC0415

    return run_agent_scenario


def run_scenario(
    scenario: Scenario,
    profile: Profile,
    *,
    preset: str | None = None,
    seed: int | None = None,
    allow_network: bool = False,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
    harness: Callable[[LLM_Harness], LLM_Harness] = unchanged,
) -> RunRecord:
    """Run one scenario under one profile; see `reference.run_scenario`."""
    run = _agent() if scenario.engine == "agent" else reference.run_scenario
    return run(
        scenario,
        profile,
        preset=preset,
        seed=seed,
        allow_network=allow_network,
        tokenizers=tokenizers,
        exchanges=exchanges,
        harness=harness,
    )


def load_for(scenarios: Iterable[Scenario]) -> None:
    """Load what running these needs and takes a tenth of a second and more: their engine, the models' vocabularies.

    For a process whose copies run them: each would load it again.
    """
    engines: set[str] = set()
    models: set[str] = set()
    for scenario in scenarios:
        engines.add(scenario.engine)
        models.update(agent.model for agent in scenario.agents.values())
    if "agent" in engines:
        _agent()
    for tokenizer in {
        tokenizer_for_model(model).name: tokenizer_for_model(model) for model in models
    }.values():
        tokenizer.tokenizer.count(" ")
