"""Playing variations of one scenario of engine two, judging them, and keeping what was found.

`AgentPlayer` plays and judges, `AgentFound` has the failures so far, `AgentCosts` counts what one crash adds: the
answers that died with their process and are asked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from statek_sim.backends.agent import prices_of, run_agent_scenario
from statek_sim.backends.agent_sessions import Moments
from statek_sim.backends.call_log import billed_usage
from statek_sim.backends.deviations import Picks, with_deviations
from statek_sim.errors import BadInput, Untimely
from statek_sim.explore.agent_variation import RESUMES, AgentInvariant, AgentVariation, violations_of
from statek_sim.explore.explorer import REPEATS, Played, difference, ended_by
from statek_sim.explore.found_case import ddmin
from statek_sim.explore.invariants import Violation
from statek_sim.explore.result import Cell, CrashCost, Failure
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.pricing import PriceList
from statek_sim.usage.totals import TurnUsage

FOR_GOOD: Final = "its worker dies and is not started again, so that no crash says anything"


class AgentPlayer:
    """Plays one scenario of engine two under one profile, with commits on.

    `invariants` are asked besides the built-in ones. Crashes that the scenario has of its own belong to every run.
    """

    def __init__(
        self, scenario: Scenario, profile: str, invariants: Mapping[str, AgentInvariant] | None = None
    ) -> None:
        self.scenario, self.profile = committing(with_deviations(scenario, ())), profile
        self.invariants = invariants or {}
        self._again = frozenset(name for name, text in scenario.tools.items() if text.after_crash == "again")
        acts = Counter(event.action for event in scenario.events)
        if acts["crash"] > acts["restart"]:
            raise BadInput(f"scenario {scenario.id!r}: {FOR_GOOD}")
        self._dies_itself = acts["crash"] > 0
        moments = Moments(needed=self._needed(()))
        record = run_agent_scenario(self.scenario, profile, moments=moments)
        self.base = AgentVariation(record, moments, None, self._again, (), tuple(scenario.tags))

    def _needed(self, deviations: Sequence[Deviation]) -> frozenset[int] | None:
        """Return which commits a new process will look for, None: nobody knows."""
        if self._dies_itself:
            return None
        dies = any(one.action == "kill" for one in deviations)
        return self.base.moments.needed_by(deviations) if dies else frozenset()

    def play(self, deviations: Sequence[Deviation], pick: Picks | None = None) -> AgentVariation:
        """Play one variation; `pick` makes the choices that no deviation makes."""
        moments = Moments(
            tuple(deviations), self.base.moments.taken, needed=self._needed(deviations), pick=pick
        )
        record = run_agent_scenario(with_deviations(self.scenario, deviations), self.profile, moments=moments)
        return AgentVariation(
            record, moments, self.base, self._again, tuple(deviations), tuple(self.scenario.tags)
        )

    def judged(self, deviations: Sequence[Deviation]) -> tuple[AgentVariation | None, tuple[Violation, ...]]:
        """Play one variation and say what is wrong with it; None: there is no run, and why is what is wrong.

        Raises `Untimely` where the scenario's world cannot do what a deviation asks.
        """
        try:
            run = self.play(deviations)
        except Exception as error:  # noqa: BLE001  # a bug of the loop's is what we look for
            return None, (self.refused(deviations, error),)
        return run, self.violations(run)

    def refused(self, deviations: Sequence[Deviation], error: Exception) -> Violation:
        """Return what is wrong with a run that `error` ended; raises it where it says nothing about the run."""
        refused = isinstance(error, BadInput) and not isinstance(error, Untimely)
        if refused and deviations and all(one.action == "kill" for one in deviations):
            # A new process cannot take the run up: a tool of its commit is there no more.
            return Violation(RESUMES, str(error))
        return ended_by(error)

    def violations(self, run: AgentVariation) -> tuple[Violation, ...]:
        """Return what is wrong with a run."""
        return tuple(violations_of(run, self.invariants))

    def wrong(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with one variation, also that it is another one when it is played again."""
        run, wrong = self.judged(deviations)
        return wrong if run is None else wrong + self.repeated(deviations, run)

    def breaks(self, name: str, deviations: Sequence[Deviation]) -> str | None:
        """Return how these deviations break this invariant, None if they do not."""
        try:
            wrong = self.wrong(deviations) if name == REPEATS else self.judged(deviations)[1]
        except Untimely:
            return None
        return next((one.message for one in wrong if one.invariant == name), None)

    def repeated(self, deviations: Sequence[Deviation], run: Played) -> tuple[Violation, ...]:
        """Play it again: two runs that differ depend on something that nobody controls, and it is named."""
        again = self.play(deviations).record
        if again.digest == run.digest:
            return ()
        return (Violation(REPEATS, difference(run.events, again.events)),)

    def absent(self, deviations: Sequence[Deviation]) -> tuple[str, ...]:
        """Return the kills that the run gives no occasion for."""
        return self.play(deviations).moments.absent()


def committing(scenario: Scenario) -> Scenario:
    """Return the scenario with commits on for all of its agents."""
    agents = {
        role: text.model_copy(update={"harness": text.harness.model_copy(update={"commits": True})})
        for role, text in scenario.agents.items()
    }
    return scenario.model_copy(update={"agents": agents})


@dataclass(slots=True)
class AgentFound:
    """Failures with the smallest deviations that show them, cells of the crash map, and counts.

    `reached`: of every `sometimes` invariant, whether some run reached it.
    """

    reached: dict[str, bool]
    smallest: dict[str, tuple[tuple[Deviation, ...], str]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    cells: list[Cell] = field(default_factory=list)
    runs: int = 1
    unknown: int = 0
    repeats: int = 0
    crash: CrashCost = field(default_factory=CrashCost)
    triples: int = 0

    def note(self, deviations: tuple[Deviation, ...], wrong: Sequence[Violation]) -> None:
        """Keep the first of the smallest that break an invariant."""
        for one in wrong:
            self.times[one.invariant] += 1
            known = self.smallest.get(one.invariant)
            if known is None or len(deviations) < len(known[0]):
                self.smallest[one.invariant] = (deviations, one.message)

    def failures(self, breaks: Callable[[str, Sequence[Deviation]], str | None]) -> tuple[Failure, ...]:
        """Return each failure with the fewest deviations that still show it."""
        return tuple(self._failure(name, breaks) for name in self.smallest)

    def _failure(self, name: str, breaks: Callable[[str, Sequence[Deviation]], str | None]) -> Failure:
        deviations, message = self.smallest[name]
        if name != REPEATS and len(deviations) > 1:

            def fails(parts: Sequence[Deviation]) -> bool:
                self.runs += 1
                return breaks(name, parts) is not None

            deviations = ddmin(deviations, fails)
            message = breaks(name, deviations) or message
        return Failure(invariant=name, message=message, deviations=deviations, times=self.times[name])


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
