"""Exploring a scenario of engine two: its process dies at every distinct moment, and a new one goes on.

What is explored is the loop with commits on, whether the scenario has them or not, since without them every death is a
new start. The model says the same at the same turn. Every request fails in four ways, every limit binds earlier,
messages and answers of people come at other times, and what may go on first does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from statek_sim.backends.agent_sessions import SOON
from statek_sim.backends.deviations import Picks, Point
from statek_sim.errors import Untimely
from statek_sim.explore.agent_certificates import AgentEffects
from statek_sim.explore.agent_orders import every_agent_order
from statek_sim.explore.agent_player import AgentCosts, AgentFound, AgentPlayer
from statek_sim.explore.agent_variation import AgentInvariant, AgentVariation, ends_as_undisturbed
from statek_sim.explore.explorer import Bounds, after_death
from statek_sim.explore.invariants import Violation, is_sometimes
from statek_sim.explore.plan import faults_of, kill_at, limits_below, moves_of
from statek_sim.explore.result import Beyond, Cell, Count, Explored
from statek_sim.harness.limits import HarnessLimits
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario

EVERY: Final = 50
MOST_EVENTS: Final = 300_000
"""Events that the crashes of one run come to at most, were every run as long as the undisturbed one: some 20 seconds.

A run of many turns commits hundreds of times and is played to its end each time; its moments are evenly spread then.
"""
THIRDS: Final = 4
"""After each so many second crashes there is a third, as of engine one a quarter as many threes as twos are played."""
_UNLIMITED: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)
VARIED: Final = ("crashes", "orders", "limits", "faults", "moves")
NOT_VARIED: Final = f"of engine agent {', '.join(VARIED)} are varied; expected one of them as --kind"


def _later(run: AgentVariation, kill: Deviation) -> list[Point]:
    """Return the distinct moments of a run after one at which it was killed."""
    return [point for point in run.moments.distinct() if point.place > (kill.kill, kill.silent)]


class AgentExplorer:
    """Explores one scenario of engine two under one profile; `invariants` are asked besides the built-in ones."""

    def __init__(
        self, scenario: Scenario, profile: str, invariants: Mapping[str, AgentInvariant] | None = None
    ) -> None:
        self.player = AgentPlayer(scenario, profile, invariants)
        self._base = self.player.base
        self._costs = AgentCosts(self.player.scenario, self._base)
        self._effects = AgentEffects(self._base, _own_tools(scenario))
        self._chance = random.Random(scenario.seed)

    def explore(self, bounds: Bounds) -> Explored:
        """Play all single deviations of these kinds, and as many at once as the depth says."""
        invariants = self.player.invariants
        found = AgentFound({name: False for name, check in invariants.items() if is_sometimes(check)})
        proven, beyond, kinds = dict[str, Count](), Beyond(), bounds.kinds
        self._costs.prices = bounds.prices
        others = {kind: wanted for kind, wanted in self._others().items() if kind in kinds}
        if "crashes" in kinds:
            kills, pairs = self._crashes(found, proven, bounds)
            if bounds.depth >= 2:
                pairs = self._with_others(kills, others, found, pairs, bounds.pairs)
            beyond = Beyond(pairs=pairs, triples=found.triples)
        for kind, wanted in others.items():
            played = [self._tried((one,), found) for one in wanted]
            proven[kind] = Count(sum(played), len(wanted))
        if "orders" in kinds:
            proven["orders"], beyond = self._orders(found, bounds, beyond)
        found.runs += 1
        found.note((), self.player.repeated((), self._base))
        return self._told(found, proven, beyond)

    def singles(self) -> tuple[Deviation, ...]:
        """Return every single deviation that the scenario gives occasion for, simple ones first."""
        return (*(one for wanted in self._others().values() for one in wanted), *self._kills())

    def _kills(self) -> list[Deviation]:
        """Return a kill at every distinct moment, or of too many at some that are evenly spread."""
        distinct = self._base.moments.distinct()
        most = 1 + MOST_EVENTS // max(1, len(self._base.record.events))
        return [kill_at(point, SOON) for point in distinct[:: 1 + len(distinct) // (most + 1)]]

    def _tried(self, deviations: tuple[Deviation, ...], found: AgentFound) -> bool:
        """Play a variation; False where the scenario's world cannot do what it asks."""
        try:
            self._visit(deviations, found)
        except Untimely:
            # A message that was moved to where there is nobody to take it.
            return False
        return True

    def _orders(self, found: AgentFound, bounds: Bounds, beyond: Beyond) -> tuple[Count, Beyond]:
        """Play all orders under a cap, and random ones beyond it."""

        def play(pick: Picks) -> AgentVariation:
            return self.player.play((), pick)

        def visit(deviations: tuple[Deviation, ...], run: AgentVariation) -> None:
            found.runs += 1
            departed = replace(run, deviations=deviations)
            wrong = self.player.violations(departed)
            if found.runs % EVERY == 0:
                found.runs += 1
                wrong += self.player.repeated(deviations, departed)
            self._note(deviations, departed, wrong, found)

        def failed(deviations: tuple[Deviation, ...], error: Exception) -> bool:
            if isinstance(error, Untimely):
                return False
            found.runs += 1
            self._note(deviations, None, (self.player.refused(deviations, error),), found)
            return True

        proven, surely = every_agent_order(play, visit, failed, self._base.moments.choices, bounds)
        if surely is not None:
            beyond = replace(beyond, depth=bounds.pct_depth, probability=surely)
        return proven, beyond

    def _others(self) -> dict[str, list[Deviation]]:
        """Return the single deviations that are no crashes, by kind."""
        jobs = self._base.record.jobs.values()
        counts = [(job.turns, job.exceptions, job.streak, 0) for job in jobs]
        return {
            "limits": limits_below(counts, self._base.record.events, _UNLIMITED),
            "faults": faults_of(self._base.moments.taken),
            "moves": moves_of(self.player.scenario, [point.at for point in self._base.moments.points]),
        }

    def _crashes(
        self, found: AgentFound, proven: dict[str, Count], bounds: Bounds
    ) -> tuple[list[Deviation], Count]:
        """Kill the process at every moment, with a depth of 2 once more at every moment after that, and so on."""
        kills, tried = self._kills(), Count()
        for kill in kills:
            after = self._visit((kill,), found, transcripts=bounds.transcripts)
            if bounds.depth >= 2 and after is not None:
                tried = self._again_after(kill, after, found, tried, bounds)
        proven["crashes"] = Count(len(kills), len(self._base.moments.distinct()))
        return kills, tried

    def _again_after(
        self, kill: Deviation, after: AgentVariation, found: AgentFound, tried: Count, bounds: Bounds
    ) -> Count:
        """Kill the process once more at every moment after a kill, and with a depth of 3 now and then a third time."""
        later = _later(after, kill)
        allowed = later[: max(0, bounds.pairs - tried.tried)]
        for number, point in enumerate(allowed, start=tried.tried):
            kills = (kill, kill_at(point, SOON))
            recovered = self._visit(kills, found)
            third = bounds.depth >= 3 and number % THIRDS == 0 and recovered is not None
            moments = _later(recovered, kills[1]) if third and recovered is not None else ()
            if moments:
                self._visit((*kills, kill_at(self._chance.choice(moments), SOON)), found)
                found.triples += 1
        return Count(tried.tried + len(allowed), tried.of + len(later))

    def _with_others(
        self,
        kills: Sequence[Deviation],
        others: Mapping[str, Sequence[Deviation]],
        found: AgentFound,
        tried: Count,
        most: int,
    ) -> Count:
        """Play a crash together with everything else that may happen, as many as `most` leaves."""
        played, known = tried.tried, tried.of
        singles = [one for wanted in others.values() for one in wanted]
        for kill, other in product(kills, singles):
            known += 1
            if played < most:
                played += self._tried((other, kill), found)
        return Count(played, known)

    def _told(self, found: AgentFound, proven: dict[str, Count], beyond: Beyond) -> Explored:
        scenario = self.player.scenario
        failures = found.failures(self.player.breaks)
        return Explored(
            id=scenario.id,
            suite=scenario.suite,
            profile=self.player.profile,
            points=len(self._base.moments.points),
            proven=proven,
            beyond=beyond,
            failures=failures,
            reached=dict(found.reached),
            unknown=found.unknown,
            repeats=found.repeats,
            runs=found.runs,
            cells=tuple(found.cells),
            tools=self._effects.certificates(),
            crash=found.crash,
        )

    def _visit(
        self, deviations: tuple[Deviation, ...], found: AgentFound, *, transcripts: bool = False
    ) -> AgentVariation | None:
        found.runs += 1
        run, wrong = self.player.judged(deviations)
        if run is not None and found.runs % EVERY == 0:
            found.runs += 1
            wrong += self.player.repeated(deviations, run)
        self._note(deviations, run, wrong, found)
        if len(deviations) == 1 and deviations[0].action == "kill":
            lines = after_death(deviations[0], run.record.events) if transcripts and run is not None else ()
            found.cells.append(_cell(deviations[0], run, wrong, lines))
        return run

    def _note(
        self,
        deviations: tuple[Deviation, ...],
        run: AgentVariation | None,
        wrong: Sequence[Violation],
        found: AgentFound,
    ) -> None:
        found.note(deviations, wrong)
        if run is None:
            return
        found.unknown += run.left_script
        found.repeats += bool(Counter(run.moments.worked) - Counter(self._base.moments.worked))
        found.crash = self._costs.with_run(found.crash, deviations, run)
        self._effects.note(deviations, run)
        for name, reached in found.reached.items():
            if not reached and self.player.invariants[name](run) is not None:
                found.reached[name] = True


def _own_tools(scenario: Scenario) -> frozenset[str]:
    names = (name for text in scenario.agents.values() for name in text.tools)
    return frozenset(name.rpartition(":")[2] for name in names if ":" in name)


def _cell(
    kill: Deviation,
    run: AgentVariation | None,
    wrong: Sequence[Violation],
    lines: tuple[str, ...],
) -> Cell:
    what, _, job = kill.what.rpartition(" of ")
    if wrong or run is None:
        came = ",".join(sorted({one.invariant for one in wrong}))
    elif run.left_script:
        came = "unknown"
    elif run.asks:
        came = "asks"
    else:
        came = "same" if ends_as_undisturbed(run) is None else "differs"
    return Cell(kill.kill, kill.silent, what or kill.what, job if what else "", came, lines)
