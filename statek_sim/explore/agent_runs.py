"""Exploring a scenario of engine two: its process dies at every distinct moment, and a new one goes on.

What is explored is the loop with commits on, whether the scenario has them or not, since without them every death is a
new start. The model says the same at the same turn. Every request fails in four ways, every limit binds earlier,
messages and answers of people come at other times, and what may go on first does.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.backends.agent_moments import Moments
from statek_sim.backends.deviating import Picks, Point, with_deviations
from statek_sim.errors import BadInput, StatekSimError, Untimely
from statek_sim.explore.agent_costs import AgentCosts
from statek_sim.explore.agent_orders import every_agent_order
from statek_sim.explore.agent_variation import RESUMES, AgentVariation, ends_as_undisturbed, violations_of
from statek_sim.explore.explorer import REPEATS, SURVIVES, Bounds, after_death, difference
from statek_sim.explore.invariants import Violation
from statek_sim.explore.plan import faults_of, kill_at, limits_below, moves_of
from statek_sim.explore.result import Beyond, Cell, Count, CrashCost, Explored, Failure
from statek_sim.harness.limits import HarnessLimits
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario

EVERY: Final = 50
MOST_EVENTS: Final = 300_000
"""Events that the crashes of one run come to at most, were every run as long as the undisturbed one: some 20 seconds.

A run of many turns commits hundreds of times and is played to its end each time; its moments are evenly spread then.
"""
SOON: Final = 1.0
"""Virtual seconds until the new process."""
THIRDS: Final = 4
"""After each so many second crashes there is a third, as of engine one a quarter as many threes as twos are played."""
ITS_OWN: Final = "it has crashes of its own, and was written for these"
_UNLIMITED: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)
VARIED: Final = ("crashes", "orders", "limits", "faults", "moves")
NOT_VARIED: Final = f"of engine agent {', '.join(VARIED)} are varied; expected one of them as --kind"


def _later(run: AgentVariation, kill: Deviation) -> list[Point]:
    """Return the distinct moments of a run after one at which it was killed."""
    return [point for point in run.moments.distinct() if point.place > (kill.kill, kill.silent)]


@dataclass(slots=True)
class _Found:
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


class AgentExplorer:
    """Explores one scenario of engine two under one variant."""

    def __init__(self, scenario: Scenario, profile: str) -> None:
        if any(event.action in ("crash", "restart") for event in scenario.events):
            raise BadInput(f"scenario {scenario.id!r}: {ITS_OWN}")
        self.scenario, self.profile = committing(with_deviations(scenario, ())), profile
        self._again = frozenset(name for name, text in scenario.tools.items() if text.after_crash == "again")
        moments = Moments(needed=frozenset())
        record = run_agent_scenario(self.scenario, profile, moments=moments)
        self._base = AgentVariation(record, moments, None, self._again)
        self._costs = AgentCosts(self.scenario, self._base)
        self._chance = random.Random(scenario.seed)

    def play(self, deviations: Sequence[Deviation], pick: Picks | None = None) -> AgentVariation:
        """Play one variation; `pick` makes the choices that no deviation makes."""
        base = self._base.moments
        dies = any(one.action == "kill" for one in deviations)
        needed = base.needed_by(deviations) if dies else frozenset()
        moments = Moments(tuple(deviations), base.taken, needed=needed, pick=pick)
        record = run_agent_scenario(with_deviations(self.scenario, deviations), self.profile, moments=moments)
        return AgentVariation(
            record, moments, self._base, self._again, tuple(deviations), tuple(self.scenario.tags)
        )

    def wrong(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Return what is wrong with one variation, also that it is another one when it is played again."""
        run, wrong = self._judged(deviations)
        return wrong if run is None else wrong + self._repeated(deviations, run)

    def _repeated(self, deviations: Sequence[Deviation], run: AgentVariation) -> tuple[Violation, ...]:
        again = self.play(deviations).record
        if again.digest == run.record.digest:
            return ()
        return (Violation(REPEATS, difference(run.record.events, again.events)),)

    def absent(self, deviations: Sequence[Deviation]) -> tuple[str, ...]:
        """Return the kills that the run gives no occasion for."""
        return self.play(deviations).moments.absent()

    def explore(self, bounds: Bounds) -> Explored:
        """Play all single deviations of these kinds, with a depth of 2 a second crash after each, and with 3 more."""
        found, proven, beyond, kinds = _Found(), dict[str, Count](), Beyond(), bounds.kinds
        self._costs.prices = bounds.prices
        if "crashes" in kinds:
            transcripts = bounds.transcripts
            proven["crashes"], pairs = self._crashes(
                found, bounds.depth, bounds.pairs, transcripts=transcripts
            )
            beyond = Beyond(pairs=pairs, triples=found.triples)
        for kind, wanted in self._others().items():
            if kind in kinds:
                played = [self._tried(one, found) for one in wanted]
                proven[kind] = Count(sum(played), len(wanted))
        if "orders" in kinds:
            proven["orders"], beyond = self._orders(found, bounds, beyond)
        found.runs += 1
        found.note((), self._repeated((), self._base))
        return self._told(found, proven, beyond)

    def _tried(self, one: Deviation, found: _Found) -> bool:
        """Play a single deviation; False where the scenario's world cannot do what it asks."""
        try:
            self._visit((one,), found)
        except Untimely:
            # A message that was moved to where there is nobody to take it.
            return False
        return True

    def _orders(self, found: _Found, bounds: Bounds, beyond: Beyond) -> tuple[Count, Beyond]:
        """Play all orders under a cap, and random ones beyond it."""

        def play(pick: Picks) -> AgentVariation:
            return self.play((), pick)

        def visit(deviations: tuple[Deviation, ...], run: AgentVariation) -> None:
            found.runs += 1
            departed = replace(run, deviations=deviations)
            wrong = tuple(violations_of(departed))
            if found.runs % EVERY == 0:
                found.runs += 1
                wrong += self._repeated(deviations, departed)
            self._note(deviations, departed, wrong, found)

        proven, surely = every_agent_order(play, visit, self._base.moments.choices, bounds)
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
            "moves": moves_of(self.scenario, [point.at for point in self._base.moments.points]),
        }

    def _crashes(self, found: _Found, depth: int, pairs: int, *, transcripts: bool) -> tuple[Count, Count]:
        """Kill the process at every moment, with a depth of 2 once more at every moment after that, and so on."""
        distinct = self._base.moments.distinct()
        most = 1 + MOST_EVENTS // max(1, len(self._base.record.events))
        kills = [kill_at(point, SOON) for point in distinct[:: 1 + len(distinct) // (most + 1)]]
        tried = Count()
        for kill in kills:
            after = self._visit((kill,), found, transcripts=transcripts)
            if depth >= 2:
                tried = self._again_after(kill, after, found, tried, pairs, thrice=depth >= 3)
        return Count(len(kills), len(distinct)), tried

    def _told(self, found: _Found, proven: dict[str, Count], beyond: Beyond) -> Explored:
        scenario = self.scenario
        return Explored(
            id=scenario.id,
            suite=scenario.suite,
            profile=self.profile,
            points=len(self._base.moments.points),
            proven=proven,
            beyond=beyond,
            failures=tuple(
                Failure(invariant=name, message=message, deviations=deviations, times=found.times[name])
                for name, (deviations, message) in found.smallest.items()
            ),
            unknown=found.unknown,
            repeats=found.repeats,
            runs=found.runs,
            cells=tuple(found.cells),
            crash=found.crash,
        )

    def _again_after(
        self,
        kill: Deviation,
        after: AgentVariation | None,
        found: _Found,
        tried: Count,
        most: int,
        *,
        thrice: bool,
    ) -> Count:
        if after is None:
            return tried
        later = _later(after, kill)
        allowed = later[: max(0, most - tried.tried)]
        for number, point in enumerate(allowed, start=tried.tried):
            kills = (kill, kill_at(point, SOON))
            recovered = self._visit(kills, found)
            third = () if recovered is None or not thrice or number % THIRDS else _later(recovered, kills[1])
            if third:
                self._visit((*kills, kill_at(self._chance.choice(third), SOON)), found)
                found.triples += 1
        return Count(tried.tried + len(allowed), tried.of + len(later))

    def _visit(
        self, deviations: tuple[Deviation, ...], found: _Found, *, transcripts: bool = False
    ) -> AgentVariation | None:
        found.runs += 1
        run, wrong = self._judged(deviations)
        if run is not None and found.runs % EVERY == 0:
            found.runs += 1
            wrong += self._repeated(deviations, run)
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
        found: _Found,
    ) -> None:
        found.note(deviations, wrong)
        if run is not None:
            found.unknown += bool(run.moments.unknown)
            found.repeats += bool(Counter(run.moments.worked) - Counter(self._base.moments.worked))
            found.crash = self._costs.with_run(found.crash, deviations, run)

    def _judged(self, deviations: Sequence[Deviation]) -> tuple[AgentVariation | None, tuple[Violation, ...]]:
        try:
            run = self.play(deviations)
        except Untimely:
            raise
        except BadInput as error:
            if any(one.action != "kill" for one in deviations):
                return None, (Violation(SURVIVES, f"{type(error).__name__}: {error}"),)
            # A new process cannot take the run up: a tool of its commit is there no more.
            return None, (Violation(RESUMES, str(error)),)
        except StatekSimError:
            raise
        except Exception as error:  # noqa: BLE001  # a bug of the loop's is what we look for
            return None, (Violation(SURVIVES, f"{type(error).__name__}: {error}"),)
        return run, tuple(violations_of(run))


def committing(scenario: Scenario) -> Scenario:
    """Return the scenario with commits on for all of its agents."""
    agents = {
        role: text.model_copy(update={"harness": text.harness.model_copy(update={"commits": True})})
        for role, text in scenario.agents.items()
    }
    return scenario.model_copy(update={"agents": agents})


def _cell(
    kill: Deviation,
    run: AgentVariation | None,
    wrong: Sequence[Violation],
    lines: tuple[str, ...],
) -> Cell:
    what, _, job = kill.what.rpartition(" of ")
    if wrong or run is None:
        came = ",".join(sorted({one.invariant for one in wrong}))
    elif run.moments.unknown:
        came = "unknown"
    elif run.asks:
        came = "asks"
    else:
        came = "same" if ends_as_undisturbed(run) is None else "differs"
    return Cell(kill.kill, kill.silent, what or kill.what, job if what else "", came, lines)
