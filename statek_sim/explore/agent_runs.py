"""Exploring a scenario of engine two: its process dies at every distinct moment, and a new one goes on.

What is explored is the loop with commits on, whether the scenario has them or not, since without them every death is a
new start. The model says the same at the same turn. Every request fails in four ways, and every limit binds earlier.
Orders and the times of events are not varied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from statek_sim.backends.agent import prices_of, run_agent_scenario
from statek_sim.backends.agent_moments import Moments
from statek_sim.backends.deviating import with_deviations
from statek_sim.backends.record import RunRecord
from statek_sim.errors import BadInput, StatekSimError
from statek_sim.explore.explorer import REPEATS, SURVIVES, after_death, difference
from statek_sim.explore.invariants import Violation
from statek_sim.explore.plan import faults_of, kill_at, limits_below
from statek_sim.explore.result import Beyond, Cell, Count, CrashCost, Explored, Failure
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.metering.usage import TurnUsage
from statek_sim.scenario.deviation import Deviation
from statek_sim.scenario.schema import Scenario

EVERY: Final = 50
MOST: Final = 150
"""Moments of one run that are tried, evenly spread where it has more: a run of many turns commits hundreds of times."""
MOST_EVENTS: Final = 80_000
"""Events that its crashes come to at most, were every run as long as the undisturbed one."""
SOON: Final = 1.0
"""Virtual seconds until the new process."""
ASKED: Final = "Unanswered"
"""The error of a run in which nobody answers: of calls that may have happened a person is asked."""
ITS_OWN: Final = "it has crashes of its own, and was written for these"
SLOTS: Final = "its runs take turns in slots, and a process that holds or waits for a slot cannot die here"
_UNLIMITED: Final = HarnessLimits(
    max_turns=None, max_exceptions=None, max_consecutive_exceptions=None, max_token_usage=None
)
VARIED: Final = ("crashes", "limits", "faults")
NOT_VARIED: Final = f"of engine agent {', '.join(VARIED)} are varied; expected one of them as --kind"


@dataclass(frozen=True, slots=True)
class AgentVariation:
    """One run and the undisturbed one it departs from."""

    record: RunRecord
    moments: Moments
    base: AgentVariation | None
    again: frozenset[str]
    """Tools of which the scenario says that they may be called again after a crash."""
    deviations: tuple[Deviation, ...] = ()

    @property
    def only_dies(self) -> bool:
        """Whether nothing but its process fails, so that it has to come to the same."""
        return all(one.action == "kill" for one in self.deviations)

    @property
    def turns(self) -> list[tuple[str, TurnUsage]]:
        """What every answer used, with its job: also of those that died with their process."""
        return [*((call.job, call.usage) for call in self.record.calls), *self.moments.lost]

    @property
    def asks(self) -> bool:
        """Whether a person is asked who was not before: a call may have happened, and nobody knows."""
        error = self.record.error
        before = None if self.base is None else self.base.record.error
        return error is not None and error.type == ASKED and (before is None or before.type != ASKED)


def ends_as_undisturbed(run: AgentVariation) -> str | None:
    """Every job that ends undisturbed ends here too, in the same way and with the same answer."""
    if run.base is None or run.moments.unknown or run.asks or not run.only_dies:
        return None
    for name, before in run.base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status != "DONE":
            continue
        if now is None or now.status != "DONE":
            return (
                f"{name} is {'not there' if now is None else now.status} at the end, undisturbed it is DONE"
            )
        for what in ("stop", "answer", "steps_done"):
            mine, theirs = getattr(now, what), getattr(before, what)
            if mine != theirs:
                return f"{name}: {what} is {mine!r}, undisturbed {theirs!r}"
    return None


def tools_work_once(run: AgentVariation) -> str | None:
    """No tool does its work more often than undisturbed, but those that may be called again."""
    if run.base is None:
        return None
    before = Counter(run.base.moments.worked)
    for (job, tool), times in sorted(Counter(run.moments.worked).items()):
        if tool not in run.again and times > before[job, tool]:
            return f"{tool} worked {times} times for {job}, undisturbed {before[job, tool]} times"
    return None


def no_error_of_the_loop(run: AgentVariation) -> str | None:
    """A crash makes no error that the undisturbed run does not have; what is left over of scripts does not count."""
    error = run.record.error
    base = None if run.base is None else run.base.record.error
    if (
        run.asks
        or not run.only_dies
        or error is None
        or error.type.startswith("Unused")
        or (base is not None and base.type == error.type)
    ):
        return None
    return f"{error.type}: {error.message}"


def every_run_ends(run: AgentVariation) -> str | None:
    """Whatever fails: a job that ends undisturbed ends, or says what it stopped for."""
    if run.base is None or run.moments.unknown or run.asks:
        return None
    for name, before in run.base.record.jobs.items():
        now = run.record.jobs.get(name)
        if before.status == "DONE" and now is not None and now.status != "DONE" and now.stop is None:
            return f"{name} is {now.status} at the end and says nothing, undisturbed it is DONE"
    return None


def limits_hold(run: AgentVariation) -> str | None:
    """No job that is over its limit of turns sends a request: one turn over it is the documented slack."""
    most = min(
        (one.value for one in run.deviations if one.limit == LimitName.MAX_TURNS and one.action == "limit"),
        default=None,
    )
    for name, job in run.record.jobs.items():
        if most is not None and job.turns > most + 1:
            return f"{name} takes {job.turns} turns, and may take {most}"
    return None


AGENT_INVARIANTS: Final[Mapping[str, Callable[[AgentVariation], str | None]]] = {
    "agent-ends-as-undisturbed": ends_as_undisturbed,
    "agent-tools-work-once": tools_work_once,
    "agent-resumes-without-error": no_error_of_the_loop,
    "agent-every-run-ends": every_run_ends,
    "agent-limits-hold": limits_hold,
}
"""What must hold of engine two, by the names that reports use."""


@dataclass(slots=True)
class _Found:
    smallest: dict[str, tuple[tuple[Deviation, ...], str]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    cells: list[Cell] = field(default_factory=list)
    runs: int = 1
    unknown: int = 0
    repeats: int = 0
    crash: CrashCost = field(default_factory=CrashCost)

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
        if scenario.slots is not None:
            raise BadInput(f"scenario {scenario.id!r}: {SLOTS}")
        self.scenario, self.profile = committing(with_deviations(scenario, ())), profile
        self._again = frozenset(name for name, text in scenario.tools.items() if text.after_crash == "again")
        moments = Moments(needed=frozenset())
        record = run_agent_scenario(self.scenario, profile, moments=moments)
        self._base = AgentVariation(record, moments, None, self._again)

    def play(self, deviations: Sequence[Deviation]) -> AgentVariation:
        """Play one variation."""
        base = self._base.moments
        needed = base.needed_by(deviations) if deviations else frozenset()
        moments = Moments(tuple(deviations), base.taken, needed=needed)
        record = run_agent_scenario(with_deviations(self.scenario, deviations), self.profile, moments=moments)
        return AgentVariation(record, moments, self._base, self._again, tuple(deviations))

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

    def explore(
        self,
        *,
        depth: int,
        pairs: int,
        kinds: Sequence[str] = ("crashes",),
        transcripts: bool = False,
    ) -> Explored:
        """Play all single deviations of these kinds, and with a depth of 2 a second crash after each crash."""
        found, proven, tried = _Found(), dict[str, Count](), Count()
        if "crashes" in kinds:
            proven["crashes"], tried = self._crashes(found, depth, pairs, transcripts=transcripts)
        for kind, wanted in self._others().items():
            if kind in kinds:
                for one in wanted:
                    self._visit((one,), found)
                proven[kind] = Count(len(wanted), len(wanted))
        found.runs += 1
        found.note((), self._repeated((), self._base))
        return self._told(found, proven, tried)

    def _others(self) -> dict[str, list[Deviation]]:
        """Return the single deviations that are no crashes, by kind."""
        jobs = self._base.record.jobs.values()
        counts = [(job.turns, job.exceptions, job.streak, 0) for job in jobs]
        return {
            "limits": limits_below(counts, self._base.record.events, _UNLIMITED),
            "faults": faults_of(self._base.moments.taken),
        }

    def _crashes(self, found: _Found, depth: int, pairs: int, *, transcripts: bool) -> tuple[Count, Count]:
        """Kill the process at every moment, and with a depth of 2 once more at every moment after that."""
        distinct = self._base.moments.distinct()
        most = min(MOST, 1 + MOST_EVENTS // max(1, len(self._base.record.events)))
        kills = [kill_at(point, SOON) for point in distinct[:: 1 + len(distinct) // (most + 1)]]
        tried = Count()
        for kill in kills:
            after = self._visit((kill,), found, transcripts=transcripts)
            if depth >= 2:
                tried = self._again_after(kill, after, found, tried, pairs)
        return Count(len(kills), len(distinct)), tried

    def _told(self, found: _Found, proven: dict[str, Count], tried: Count) -> Explored:
        scenario = self.scenario
        return Explored(
            id=scenario.id,
            suite=scenario.suite,
            profile=self.profile,
            points=len(self._base.moments.points),
            proven=proven,
            beyond=Beyond(pairs=tried),
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
        self, kill: Deviation, after: AgentVariation | None, found: _Found, tried: Count, most: int
    ) -> Count:
        if after is None:
            return tried
        place = (kill.kill, kill.silent)
        later = [point for point in after.moments.distinct() if point.place > place]
        allowed = later[: max(0, most - tried.tried)]
        for point in allowed:
            self._visit((kill, kill_at(point, SOON)), found)
        return Count(tried.tried + len(allowed), tried.of + len(later))

    def _visit(
        self, deviations: tuple[Deviation, ...], found: _Found, *, transcripts: bool = False
    ) -> AgentVariation | None:
        found.runs += 1
        run, wrong = self._judged(deviations)
        if run is not None and found.runs % EVERY == 0:
            found.runs += 1
            wrong += self._repeated(deviations, run)
        found.note(deviations, wrong)
        if run is not None:
            found.unknown += bool(run.moments.unknown)
            found.repeats += bool(Counter(run.moments.worked) - Counter(self._base.moments.worked))
            self._cost(deviations, run, found)
        if len(deviations) == 1 and deviations[0].action == "kill":
            lines = after_death(deviations[0], run.record.events) if transcripts and run is not None else ()
            found.cells.append(self._cell(deviations[0], run, wrong, lines))
        return run

    def _judged(self, deviations: Sequence[Deviation]) -> tuple[AgentVariation | None, tuple[Violation, ...]]:
        try:
            run = self.play(deviations)
        except StatekSimError:
            raise
        except Exception as error:  # noqa: BLE001  # a bug of the loop's is what we look for
            return None, (Violation(SURVIVES, f"{type(error).__name__}: {error}"),)
        return run, tuple(_violations(run))

    def _cost(self, deviations: tuple[Deviation, ...], run: AgentVariation, found: _Found) -> None:
        if len(deviations) != 1 or deviations[0].action != "kill" or run.moments.unknown:
            return
        tokens, cost = self._used(run)
        base_tokens, base_cost = self._used(self._base)
        known, where = found.crash, str(deviations[0])
        if tokens - base_tokens > known.tokens:
            known = replace(known, tokens=tokens - base_tokens, where=where)
        if cost is not None and base_cost is not None and float(cost - base_cost) > known.cost:
            known = replace(known, cost=float(cost - base_cost), cost_where=where)
        found.crash = replace(known, priced=base_cost is not None)

    def _used(self, run: AgentVariation) -> tuple[int, Decimal | None]:
        """Return the measured tokens and the cost of all answers, None: no cost of any is known."""
        costs = [self._cost_of(job, turn) for job, turn in run.turns]
        known = [cost for cost in costs if cost is not None]
        return sum(turn.measured_tokens for _, turn in run.turns), sum(known, Decimal()) if known else None

    def _cost_of(self, job: str, turn: TurnUsage) -> Decimal | None:
        """Return what the provider reported, or else what the budget's prices come to."""
        if turn.reported_cost is not None:
            return Decimal(str(turn.reported_cost))
        prices = prices_of(self.scenario.agents[self._base.record.jobs[job].agent].harness.budget)
        if prices is None:
            return None
        prompt, completion = turn.reported_prompt, turn.reported_completion
        return prices.cost(
            turn.measured_prompt if prompt is None else prompt,
            turn.measured_completion if completion is None else completion,
        )

    def _cell(
        self,
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


def _violations(run: AgentVariation) -> Iterator[Violation]:
    for name, check in AGENT_INVARIANTS.items():
        message = check(run)
        if message is not None:
            yield Violation(name, message)


def committing(scenario: Scenario) -> Scenario:
    """Return the scenario with commits on for all of its agents."""
    agents = {
        role: text.model_copy(update={"harness": text.harness.model_copy(update={"commits": True})})
        for role, text in scenario.agents.items()
    }
    return scenario.model_copy(update={"agents": agents})
