"""What one crash adds to a run of engine two: the answers that died with their process and are asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from statek_sim.backends.agent import prices_of
from statek_sim.backends.call_log import billed_usage
from statek_sim.explore.agent_variation import AgentVariation
from statek_sim.explore.result import CrashCost
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.pricing import PriceList
from statek_sim.usage.totals import TurnUsage


class AgentCosts:
    """Counts what runs of a scenario use beside the undisturbed one, `base`.

    An answer costs what its provider reported, or else what the prices of its agent's budget come to, or else those of
    `prices`.
    """

    def __init__(self, scenario: Scenario, base: AgentVariation) -> None:
        self._scenario = scenario
        self._base = base
        self.prices: PriceList | None = None

    def with_run(self, known: CrashCost, deviations: Sequence[Deviation], run: AgentVariation) -> CrashCost:
        """Return the most that one crash adds, with what this run's does; other deviations do not count."""
        if len(deviations) != 1 or deviations[0].action != "kill" or run.moments.unknown:
            return known
        tokens, cost = self._used(run)
        base_tokens, base_cost = self._used(self._base)
        where = str(deviations[0])
        if tokens - base_tokens > known.tokens:
            known = replace(known, tokens=tokens - base_tokens, where=where)
        if cost is not None and base_cost is not None and float(cost - base_cost) > known.cost:
            known = replace(known, cost=float(cost - base_cost), cost_where=where)
        return replace(known, priced=base_cost is not None)

    def _used(self, run: AgentVariation) -> tuple[int, Decimal | None]:
        """Return the measured tokens and the cost of all answers, None: no cost of any is known."""
        costs = [self._cost_of(job, turn) for job, turn in run.turns]
        known = [cost for cost in costs if cost is not None]
        return sum(turn.measured_tokens for _, turn in run.turns), sum(known, Decimal()) if known else None

    def _cost_of(self, job: str, turn: TurnUsage) -> Decimal | None:
        if turn.reported_cost is not None:
            return Decimal(str(turn.reported_cost))
        prices = prices_of(self._scenario.agents[self._base.record.jobs[job].agent].harness.budget)
        if prices is None:
            return self._listed(job, turn)
        prompt, completion = turn.reported_prompt, turn.reported_completion
        return prices.cost(
            turn.measured_prompt if prompt is None else prompt,
            turn.measured_completion if completion is None else completion,
        )

    def _listed(self, job: str, turn: TurnUsage) -> Decimal | None:
        """Return what an answer costs by the price files, None where they do not have its model."""
        if self.prices is None:
            return None
        calls = [call for call in self._base.record.calls if call.job == job]
        # The same turn is answered the same, by the same level of a ladder.
        answered = next((call for call in calls if call.usage == turn), calls[0] if calls else None)
        return (
            None if answered is None else billed_usage(turn, answered.provider, answered.model, self.prices)
        )
