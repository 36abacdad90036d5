"""Playing variations of a scenario of engine two.

What is explored is the loop with commits on, whether the scenario has them or not, since without them every death is a
new start. The model says the same at the same turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import Final

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.agent_sessions import SOON, Moments
from statek_sim.backends.agent_setup import prices_of
from statek_sim.backends.call_log import billed_usage
from statek_sim.backends.deviation_plan import DeviationPlan, with_deviations
from statek_sim.errors import BadInput, Untimely
from statek_sim.explore.agent_variation import AGENT_INVARIANTS, RESUMES, AgentVariation
from statek_sim.explore.certificates import AFTER, AT_LEAST_ONCE, BEFORE, DURING, SAFE
from statek_sim.explore.plan import distinct_points, faults_of, kill_at, limits_below, moves_of
from statek_sim.explore.player import Footprint, Picking, Violation, ended_by
from statek_sim.harness.limits import HarnessLimits
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event
from statek_sim.usage.pricing import PriceList
from statek_sim.usage.totals import TurnUsage

FOR_GOOD: Final = "its worker dies and is not started again, so that no crash says anything"

MOST_EVENTS: Final = 300_000
"""Events that the crashes of one run come to at most, were every run as long as the undisturbed one: some 20 seconds.

A run of many turns commits hundreds of times and is played to its end each time; its moments are evenly spread then.
"""

_UNLIMITED: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)


class AgentPlayer:
    """Plays one scenario of engine two under one profile, with commits on.

    Crashes that the scenario has of its own belong to every run.
    """

    restart = SOON
    built_in = AGENT_INVARIANTS
    touched: Callable[[Event], Footprint] | None = None

    def __init__(self, scenario: Scenario, profile: str) -> None:
        self.scenario, self.profile = committing(with_deviations(scenario, ())), profile
        self._again = frozenset(name for name, text in scenario.tools.items() if text.after_crash == "again")
        acts = Counter(event.action for event in scenario.events)
        if acts["crash"] > acts["restart"]:
            raise BadInput(f"scenario {scenario.id!r}: {FOR_GOOD}")
        moments = Moments()
        record = run_agent_scenario(self.scenario, profile, moments=moments)
        self.base = AgentVariation(record, moments, None, self._again, (), tuple(scenario.tags))
        self.phases = _phases(moments)

    def singles(self, kinds: Sequence[str]) -> dict[str, list[Deviation]]:
        """Return the single deviations of these kinds; of too many kills some that are evenly spread."""
        base = self.base
        jobs = base.record.jobs.values()
        counts = [(job.turns, job.exceptions, job.streak, 0) for job in jobs]
        distinct = distinct_points(base)
        most = 1 + MOST_EVENTS // max(1, len(base.events))
        every = {
            "crashes": [kill_at(point, SOON) for point in distinct[:: 1 + len(distinct) // (most + 1)]],
            "limits": limits_below(counts, base.events, _UNLIMITED),
            "faults": faults_of(base.moments.taken),
            "moves": moves_of(self.scenario, [point.at for point in base.points]),
        }
        return {kind: wanted for kind, wanted in every.items() if kind in kinds}

    def varied(
        self, deviations: Sequence[Deviation], *, pick: Picking | None = None
    ) -> AbstractContextManager[AgentVariation]:
        """Play a variation, as `play` does; what is picked is a deviation, too."""
        run = self.play(deviations, pick)
        return nullcontext(run if pick is None else replace(run, deviations=pick.deviations))

    def play(self, deviations: Sequence[Deviation], pick: Picking | None = None) -> AgentVariation:
        """Play one variation; `pick` makes the choices that no deviation makes."""
        moments = Moments(DeviationPlan(deviations, pick), self.base.moments.taken)
        record = run_agent_scenario(with_deviations(self.scenario, deviations), self.profile, moments=moments)
        return AgentVariation(
            record, moments, self.base, self._again, tuple(deviations), tuple(self.scenario.tags)
        )

    def again(self) -> AgentVariation:
        """Play the undisturbed run once more."""
        return self.play(())

    def crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct moments that a run has after its first crash."""
        after = distinct_points(self.play((first,)))
        return [kill_at(point, SOON) for point in after if point.place > (first.kill, first.silent)]

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return what is wrong with a run that `error` ended; raises it where it says nothing about the run."""
        refused = isinstance(error, BadInput) and not isinstance(error, Untimely)
        if refused and deviations and all(one.action == "kill" for one in deviations):
            # A new process cannot take the run up: a tool of its commit is there no more.
            return Violation(RESUMES, str(error))
        return ended_by(error)

    def verdict(self, run: AgentVariation, tool: str, phase: str, wrong: Iterable[Violation]) -> str:
        """Return whether a tool worked again in a run, whatever it says of it.

        Where a person is asked whether a call happened nobody makes it again without being told so: that is safe.
        """
        return AT_LEAST_ONCE if run.tool_calls[tool] > self.base.tool_calls[tool] else SAFE

    def two_owners(self) -> Iterable[AgentVariation]:
        """Yield nothing: there are no owners of work in engine two, and no claims."""
        return ()

    # -- costs -------------------------------------------------------------------------------------------------

    def used(self, run: AgentVariation, prices: PriceList | None) -> tuple[int, Decimal | None]:
        """Return the measured tokens and the cost of all answers, None: no cost of any is known.

        An answer costs what its provider reported, or else what the prices of its agent's budget come to, or else those
        of `prices`.
        """
        costs = [self._cost_of(job, turn, prices) for job, turn in run.turns]
        known = [cost for cost in costs if cost is not None]
        return sum(turn.measured_tokens for _, turn in run.turns), sum(known, Decimal()) if known else None

    def _cost_of(self, job: str, turn: TurnUsage, listed: PriceList | None) -> Decimal | None:
        if turn.reported_cost is not None:
            return Decimal(str(turn.reported_cost))
        prices = prices_of(self.scenario.agents[self.base.record.jobs[job].agent].harness.budget)
        if prices is None:
            return None if listed is None else self._listed(job, turn, listed)
        prompt, completion = turn.reported_prompt, turn.reported_completion
        return prices.cost(
            turn.measured_prompt if prompt is None else prompt,
            turn.measured_completion if completion is None else completion,
        )

    def _listed(self, job: str, turn: TurnUsage, prices: PriceList) -> Decimal | None:
        """Return what an answer costs by the price files, None where they do not have its model."""
        calls = [call for call in self.base.record.calls if call.job == job]
        # The same turn is answered the same, by the same level of a ladder.
        answered = next((call for call in calls if call.usage == turn), calls[0] if calls else None)
        return None if answered is None else billed_usage(turn, answered.provider, answered.model, prices)


def committing(scenario: Scenario) -> Scenario:
    """Return the scenario with commits on for all of its agents."""
    agents = {
        role: text.model_copy(update={"harness": text.harness.model_copy(update={"commits": True})})
        for role, text in scenario.agents.items()
    }
    return scenario.model_copy(update={"agents": agents})


def _phases(moments: Moments) -> dict[int, set[tuple[str, str]]]:
    """Return, for moments by number, which tool's calls they are about, and how far these are.

    Before a call is the commit that says it will be made; after it is the receipt that says it was.
    """
    found: dict[int, set[tuple[str, str]]] = {}
    calling: dict[str, int] = {}
    worked: dict[str, str] = {}
    for number, point in enumerate(moments.points):
        if point.what == "commit calling":
            calling[point.job] = number
        elif point.what.endswith(" worked"):
            tool = point.what.removesuffix(" worked")
            worked[point.job] = tool
            found.setdefault(number, set()).add((tool, DURING))
            if point.job in calling:
                found.setdefault(calling[point.job], set()).add((tool, BEFORE))
        elif point.what.startswith("receipt ") and point.job in worked:
            found.setdefault(number, set()).add((worked.pop(point.job), AFTER))
    return found
