"""The tasks of scenarios that were run, for the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from statek_sim.errors import BadInput
from statek_sim.suite.result import ScenarioResult
from statek_sim.telemetry.facts import Cost, TaskFacts, task_facts
from statek_sim.usage.pricing import PriceList


def tasks_of(results: Iterable[ScenarioResult], *, cost: Cost | None = None) -> list[TaskFacts]:
    """Return the tasks of runs in their order; a suite is their group."""
    return [
        task
        for result in results
        for task in task_facts(result.record.events, run=result.id, group=result.scenario.suite, cost=cost)
    ]


def cost_by(prices: PriceList) -> Cost:
    """Return what requests cost by the rows of price files that name their model, whoever the provider is.

    `BadInput` for a model with two prices: a trace does not say which provider answered.
    """

    def cost(model: str, prompt: int, completion: int) -> Decimal | None:
        fitting = {
            (price.input, price.output): price
            for price in prices.prices
            if price.model.casefold() == model.casefold()
        }
        if len(fitting) > 1:
            places = ", ".join(price.place for price in fitting.values())
            raise BadInput(f"model {model!r} has more than one price ({places}); leave one of them")
        for price in fitting.values():
            return (prompt * price.input + completion * price.output) / 1_000_000
        return None

    return cost
