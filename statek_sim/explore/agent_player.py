"""Playing variations of one scenario of engine two, and judging them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.agent_sessions import Moments
from statek_sim.backends.deviations import Picks, with_deviations
from statek_sim.errors import BadInput, Untimely
from statek_sim.explore.agent_variation import RESUMES, AgentInvariant, AgentVariation, violations_of
from statek_sim.explore.explorer import REPEATS, Played, difference, ended_by
from statek_sim.explore.invariants import Violation
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario

FOR_GOOD: Final = "its worker dies and is not started again, so that no crash says anything"


class AgentPlayer:
    """Plays one scenario of engine two under one variant, with commits on.

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
