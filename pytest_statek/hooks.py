"""This plugin's hooks. Implement them in a conftest.py or in your own plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statek_sim.suite.result import ScenarioResult
    from statek_sim.usage.tokenizers import TokenizerRegistry


def pytest_statek_scenario_result(result: ScenarioResult) -> None:
    """Called with the result of each scenario under each profile, whether it passed or failed.

    Called before pytest knows the item's outcome, in the process that ran it (a worker under pytest-xdist). An
    exception fails the item.
    """


def pytest_statek_tokenizers(registry: TokenizerRegistry) -> None:
    """Register your own tokenizers: `registry.register_tokenizer("my-model", "my-tokenizer", tokenizer)`.

    Called once per process, before the first test that uses a `statek_` fixture.
    """
