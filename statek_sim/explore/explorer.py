"""Exploring one scenario: every single deviation, every order under a cap, and combinations as far as is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice, product
from typing import Final, Protocol

from statek_sim.backends.call_log import cost_of_all
from statek_sim.backends.deviations import Place, Point
from statek_sim.backends.reference import ReferenceRun
from statek_sim.errors import BadInput, StatekSimError, Untimely
from statek_sim.explore import plan
from statek_sim.explore.certificates import Effects, certificates, two_owners
from statek_sim.explore.found_case import ddmin
from statek_sim.explore.invariants import BUILT_IN, Invariant, Violation, is_sometimes, violations
from statek_sim.explore.orders import (
    Priorities,
    as_deviations,
    explore_orders,
    probability_of,
    runs_needed,
)
from statek_sim.explore.result import KINDS, Beyond, Cell, Count, CrashCost, Explored, Failure
from statek_sim.explore.state import States
from statek_sim.explore.variation import Undisturbed, Variation, undisturbed, varied
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.transcript import formatted, numbered
from statek_sim.trace import Event, ToolCalled, as_dict
from statek_sim.usage.pricing import PriceList

REPEATS: Final = "the-run-repeats"
"""The invariant that two runs with the same deviations are the same: of the undisturbed one, and every fiftieth."""

SURVIVES: Final = "the-runtime-survives"
"""The invariant that no deviation makes the runtime itself fail."""

EVERY: Final = 50

PLANS: Final[Mapping[str, Callable[[Undisturbed], list[Deviation]]]] = {
    "crashes": plan.kills,
    "limits": plan.limits,
    "faults": plan.faults,
    "moves": plan.moves,
    "commits": plan.lost_commits,
}
"""Which single deviations there are of each kind."""


class Played(Protocol):
    """A run that was played: its trace."""

    @property
    def events(self) -> Sequence[Event]:
        """The trace."""

    @property
    def digest(self) -> str:
        """What tells it from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far to go.

    `kinds`: of `result.KINDS`. `depth`: deviations in one run. `orders`, `pairs`, `pct_runs`: runs at most. `pct_depth`
    and `pct_probability`: what random orders are to find, and how surely. `transcripts`: say what follows on kills.
    `only`: the worker dies at this place only, as `Point.place`; None: at every distinct one. `share`: which share of
    the crashes, from 0, of how many; all that is no crash belongs to the last. `prices`: of calls whose provider
    reports no cost.
    """

    kinds: tuple[str, ...] = KINDS
    depth: int = 1
    orders: int = 200
    pairs: int = 2000
    pct_depth: int = 3
    pct_probability: float = 0.99
    pct_runs: int = 1000
    transcripts: bool = False
    only: Place | None = None
    share: tuple[int, int] = (0, 1)
    prices: PriceList | None = None


@dataclass(slots=True)
class _Found:
    """What has been found so far in one scenario."""

    smallest: dict[str, tuple[tuple[Deviation, ...], str]] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    failing: list[tuple[str, tuple[Deviation, ...], int]] = field(default_factory=list)
    reached: dict[str, bool] = field(default_factory=dict)
    runs: int = 0
    unknown: int = 0
    repeats: int = 0
    crash: CrashCost = field(default_factory=CrashCost)

    def note(self, deviations: tuple[Deviation, ...], found: Iterable[Violation]) -> None:
        """Keep the first of the smallest that break an invariant."""
        for violation in found:
            name = violation.invariant
            self.failing.append((name, deviations, self.runs))
            self.times[name] = self.times.get(name, 0) + 1
            known = self.smallest.get(name)
            if known is None or len(deviations) < len(known[0]):
                self.smallest[name] = (deviations, violation.message)


class Explorer:
    """Explores one scenario under one profile; `invariants` are asked besides the built-in ones."""

    def __init__(
        self,
        scenario: Scenario,
        profile: str,
        invariants: Mapping[str, Invariant] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._invariants = {**BUILT_IN, **(invariants or {})}
        self._bounds = bounds or Bounds()
        self._found = _Found(
            reached={name: False for name, check in self._invariants.items() if is_sometimes(check)}
        )
        self._base, self._record = undisturbed(scenario, profile)
        self._base_cost = cost_of_all(self._record.calls, self._bounds.prices)
        self._effects = Effects(self._base)
        self._cells: list[Cell] = []

    @property
    def bounds(self) -> Bounds:
        """How far it goes."""
        return self._bounds

    @property
    def base(self) -> Undisturbed:
        """The undisturbed run."""
        return self._base

    @property
    def runs(self) -> int:
        """Runs so far."""
        return self._found.runs

    @property
    def failing(self) -> Sequence[tuple[str, tuple[Deviation, ...], int]]:
        """Everything that broke an invariant, as it was found: invariant, deviations, and after how many runs."""
        return self._found.failing

    def explore(self) -> Explored:
        """Play everything within the bounds."""
        base, bounds = self._base, self._bounds
        singles = {kind: PLANS[kind](base) if kind in bounds.kinds else [] for kind in PLANS}
        of = {kind: len(wanted) for kind, wanted in singles.items()}
        if bounds.only is not None:
            singles["crashes"] = plan.kills_at(base, bounds.only)
        number, shares = bounds.share
        last = number == shares - 1
        singles = {kind: wanted if last else [] for kind, wanted in singles.items()} | {
            "crashes": _share(singles["crashes"], number, shares)
        }
        proven = {
            kind: Count(sum(map(self._single, wanted)), of[kind])
            for kind, wanted in singles.items()
            if kind in bounds.kinds
        }
        complete = True
        if last and "orders" in bounds.kinds:
            orders = explore_orders(base, bounds.orders, self._visit, self._failed)
            proven["orders"], complete = Count(orders.played, orders.known), orders.complete
        beyond = self._beyond(singles, complete=complete)
        if last:
            self._repeat_undisturbed()
            if "crashes" in bounds.kinds and bounds.only is None:
                self._two_owners()
        failures = tuple(self._failure(name) for name in self._found.smallest)
        found = self._found
        return Explored(
            id=base.scenario.id,
            suite=base.scenario.suite,
            profile=base.profile,
            points=len(base.points),
            proven=proven,
            beyond=beyond,
            failures=failures,
            reached=dict(found.reached),
            unknown=found.unknown,
            repeats=found.repeats,
            runs=found.runs + 1,
            cells=tuple(self._cells),
            tools=certificates(self._effects),
            crash=found.crash,
        )

    # -- playing -----------------------------------------------------------------------------------------------

    def play(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Play one variation and return what is wrong with it; the runtime's own failure is wrong too."""
        try:
            with varied(self._base, deviations) as variation:
                return violations(variation, self._invariants)
        except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
            return (ended_by(error),)

    def _single(self, deviation: Deviation) -> bool:
        """Play a single deviation; False where the scenario's application cannot do what it asks."""
        return self._try((deviation,))

    def _try(self, deviations: tuple[Deviation, ...]) -> bool:
        try:
            with varied(self._base, deviations) as variation:
                self._visit(deviations, variation)
        except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
            return self._failed(deviations, error)
        return True

    def _failed(self, deviations: tuple[Deviation, ...], error: Exception) -> bool:
        """Note what ended a run; False where the scenario's application cannot do what was asked."""
        if isinstance(error, Untimely):
            # An event came where what it is about does not exist yet.
            return False
        wrong = ended_by(error)
        self._found.runs += 1
        self._found.note(deviations, (wrong,))
        return True

    def _visit(self, deviations: tuple[Deviation, ...], variation: Variation) -> None:
        found = self._found
        found.runs += 1
        wrong = violations(variation, self._invariants)
        if found.runs % EVERY == 0:
            wrong += self.repeated(variation, deviations)
        found.note(deviations, wrong)
        found.unknown += not variation.known
        for name, reached in found.reached.items():
            if not reached and self._invariants[name](variation) is not None:
                found.reached[name] = True
        repeated = self._effects.note(deviations, variation, wrong)
        found.repeats += repeated
        if len(deviations) == 1 and deviations[0].action == "kill":
            lines = after_death(deviations[0], variation.events) if self._bounds.transcripts else ()
            self._cells.append(_cell(deviations[0], variation, wrong, self._base, lines))
            self._cost(deviations[0], variation)

    def _cost(self, deviation: Deviation, variation: Variation) -> None:
        if not variation.known and self._bounds.only is None:
            # Who asks for one crash is told what it adds as far as the script goes.
            return
        more = variation.tokens - self._base.tokens
        cost = cost_of_all(variation.calls, self._bounds.prices)
        known = self._found.crash
        if cost is None or self._base_cost is None:
            known = replace(known, priced=False)
        dearer = 0.0 if cost is None or self._base_cost is None else float(cost - self._base_cost)
        if more > known.tokens:
            known = replace(known, tokens=more, where=str(deviation))
        if dearer > known.cost:
            known = replace(known, cost=dearer, cost_where=str(deviation))
        self._found.crash = known

    def repeated(self, played: Played, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Play it again: two runs that differ depend on something that nobody controls, and it is named.

        `deviations`: those that give the run, also where a picker made its choices and none was asked for.
        """
        self._found.runs += 1
        with varied(self._base, deviations) as again:
            if again.digest == played.digest:
                return ()
            return (Violation(REPEATS, difference(played.events, again.events)),)

    def _repeat_undisturbed(self) -> None:
        try:
            self._found.note((), self._base_repeated())
        except StatekSimError:
            raise
        except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
            self._found.note((), (Violation(SURVIVES, f"{type(error).__name__}: {error}"),))

    def _base_repeated(self) -> tuple[Violation, ...]:
        if self._record.error is None:
            return self.repeated(self._base, ())
        # Its script has run out, for example, where a variation's provider refuses.
        self._found.runs += 1
        again, _ = undisturbed(self._base.scenario, self._base.profile)
        if again.digest == self._base.digest:
            return ()
        return (Violation(REPEATS, difference(self._base.events, again.events)),)

    def _two_owners(self) -> None:
        """Play the scenario with a second owner who does the same, each of them first once, for the certificates."""
        both = two_owners(self._base)
        for order in () if both is None else ("fifo", "newest"):
            assert both is not None, "there is a second owner"
            self._found.runs += 1
            scenario = both.scenario.model_copy(update={"order": order})
            try:
                with varied(replace(both, scenario=scenario), ()) as variation:
                    self._effects.note_two_owners(variation, violations(variation, BUILT_IN))
            except StatekSimError:
                # Two of them cannot do it at once, and why belongs to no crash.
                return

    # -- beyond single deviations ------------------------------------------------------------------------------

    def _beyond(self, singles: Mapping[str, Sequence[Deviation]], *, complete: bool) -> Beyond:
        bounds = self._bounds
        depth, probability = None, None
        if not complete:
            depth = bounds.pct_depth
            probability = self._random_orders(depth)
        pairs, triples = Count(), 0
        if bounds.depth >= 2:
            pairs = self._pairs(singles)
        if bounds.depth >= 3:
            triples = self._triples(singles)
        return Beyond(pairs=pairs, triples=triples, depth=depth, probability=probability)

    def _random_orders(self, depth: int) -> float:
        base, bounds = self._base, self._bounds
        jobs = len({job for choice in base.choices for job in choice.jobs})
        choices = max(len(base.choices), 1)
        runs = min(bounds.pct_runs, runs_needed(jobs, choices, depth, bounds.pct_probability))
        for seed in range(runs):
            picker = Priorities(seed, choices, depth)
            try:
                with varied(base, (), pick=picker) as variation:
                    self._visit(as_deviations(picker.taken), variation)
            except Exception as error:  # noqa: BLE001  # a bug of the runtime's is what we look for
                self._failed(as_deviations(picker.taken), error)
        return probability_of(jobs, choices, depth, runs)

    def _pairs(self, singles: Mapping[str, Sequence[Deviation]]) -> Count:
        """Play combinations of two: a second crash during and after recovery first, then a crash and something else."""
        tried = 0
        known = 0
        for first in singles["crashes"]:
            for second in self._crashes_after(first):
                known += 1
                if tried < self._bounds.pairs:
                    tried += self._try((first, second))
        others = [one for kind in ("limits", "faults", "moves") for one in singles[kind]]
        for crash, other in product(singles["crashes"], others):
            known += 1
            if tried < self._bounds.pairs:
                tried += self._try((other, crash))
        return Count(tried, known)

    def _crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points that a run has after its first crash."""
        points: list[Point] = []
        states: set[str] = set()
        seen = States()

        def watch(run: ReferenceRun, point: Point) -> None:
            state = seen.of(run, point)
            if run.deviations is None or not run.deviations.deaths:
                return
            if state not in states:
                states.add(state)
                points.append(point)

        with varied(self._base, (first,), watch=watch):
            self._found.runs += 1
        restart = plan.restart_of(self._base)
        return [plan.kill_at(point, restart) for point in points]

    def _triples(self, singles: Mapping[str, Sequence[Deviation]]) -> int:
        """Draw combinations of three at random, from a fixed seed."""
        every = [one for wanted in singles.values() for one in wanted]
        if len(every) < 3:
            return 0
        chance = random.Random(self._base.scenario.seed)
        drawn = (tuple(chance.sample(every, 3)) for _ in count())
        usable = (three for three in drawn if len({_target(one) for one in three}) == 3)
        return sum(map(self._try, islice(usable, self._bounds.pairs // 4)))

    # -- failures ----------------------------------------------------------------------------------------------

    def _failure(self, name: str) -> Failure:
        deviations, message = self._found.smallest[name]
        if name != REPEATS:
            deviations = ddmin(deviations, lambda parts: self.breaks(name, parts) is not None)
            message = self.breaks(name, deviations) or message
        return Failure(invariant=name, message=message, deviations=deviations, times=self._found.times[name])

    def breaks(self, name: str, deviations: Sequence[Deviation]) -> str | None:
        """Return how these deviations break this invariant, None if they do not."""
        self._found.runs += 1
        try:
            found = self.play(deviations)
        except Untimely:
            return None
        return next((one.message for one in found if one.invariant == name), None)

    def replay(self, name: str, deviations: Sequence[Deviation]) -> tuple[str | None, tuple[str, ...]]:
        """Return how these deviations break an invariant, None if they do not, and those that find no occasion."""
        if name == REPEATS:
            with varied(self._base, deviations) as variation:
                wrong = self.repeated(variation, deviations)
                return (wrong[0].message if wrong else None), variation.steering.check_happened()
        message = self.breaks(name, deviations)
        if message is not None:
            return message, ()
        with varied(self._base, deviations) as variation:
            return None, variation.steering.check_happened()


def ended_by(error: Exception) -> Violation:
    """Return what is wrong with a run that a bug ended, or that is refused as the undisturbed one was not.

    Raises an error that says nothing about the run: `Untimely`, and what is wrong with who explores.
    """
    if isinstance(error, Untimely) or (isinstance(error, StatekSimError) and not isinstance(error, BadInput)):
        raise error
    return Violation(SURVIVES, f"{type(error).__name__}: {error}")


def _share(every: list[Deviation], number: int, shares: int) -> list[Deviation]:
    """Return one share of several; together they are all, in their order."""
    return every[len(every) * number // shares : len(every) * (number + 1) // shares]


def _target(deviation: Deviation) -> object:
    """Return what two deviations of one run cannot both be about."""
    match deviation.action:
        case "kill" | "lose":
            return "store" if deviation.action == "lose" else (deviation.kill, deviation.silent)
        case "fault":
            return (deviation.job, deviation.reply)
        case _:
            return (deviation.action, getattr(deviation, deviation.action))


def after_death(deviation: Deviation, trace: Sequence[Event]) -> tuple[str, ...]:
    """Return what happens in a run from a kill on, as people read it."""
    rest = [line for seq, line in numbered(trace) if seq >= deviation.kill]
    return tuple(formatted(rest, name_jobs=len({line.job for line in rest if line.job}) > 1))


def _cell(
    deviation: Deviation,
    variation: Variation,
    wrong: Sequence[Violation],
    base: Undisturbed,
    lines: tuple[str, ...],
) -> Cell:
    what, _, job = deviation.what.rpartition(" of ")
    if wrong:
        came = ",".join(sorted({one.invariant for one in wrong}))
    elif not variation.known:
        came = "unknown"
    else:
        came = "same" if variation.ending == base.ending else "differs"
    return Cell(deviation.kill, deviation.silent, what or deviation.what, job if what else "", came, lines)


def difference(events: Sequence[Event], again: Sequence[Event]) -> str:
    """Say where two runs with the same deviations part, and the tool that was called last before that."""
    pairs = zip(events, again, strict=False)
    at = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        return f"one run has {len(events)} events, the same one again {len(again)}"
    tools = [event.name for event in events[:at] if isinstance(event, ToolCalled)]
    one, other = as_dict(events[at]), as_dict(again[at])
    fields = [key for key in one if one[key] != other.get(key)]
    difference = f"event {at + 1} ({one['event']}) differs in {', '.join(fields) or 'kind'}"
    return f"{difference}, after a call of tool {tools[-1]!r}" if tools else difference
