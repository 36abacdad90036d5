"""The hooks of this plugin. Implement them in a conftest.py or in a plugin of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statek_sim.suite.result import ScenarioResult
    from statek_sim.usage.tokenizers import TokenizerRegistry


def pytest_statek_scenario_result(result: ScenarioResult) -> None:
    """Hear of a scenario that has run under one profile, passed or failed.

    Called before the item's outcome is known to pytest, in the process that ran it: under pytest-xdist a worker.
    What it raises fails the item.
    """


def pytest_statek_tokenizers(registry: TokenizerRegistry) -> None:
    """Register tokenizers of your own: `registry.register_tokenizer("my-model", "my-tokenizer", tokenizer)`.

    Called once per run and process, before the first test that uses a `statek_` fixture.
    """
