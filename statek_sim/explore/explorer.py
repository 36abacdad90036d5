"""Explores one scenario: all single deviations, all orders up to a limit, and deviation pairs if requested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final

from statek_sim.errors import Untimely
from statek_sim.explore.invariants import Certificates
from statek_sim.explore.orders import draw_orders, explore_orders
from statek_sim.explore.plan import distinct_points
from statek_sim.explore.player import (
    REPEATS,
    Invariant,
    Player,
    Run,
    Violation,
    ended_by,
    is_sometimes,
    violations,
)
from statek_sim.explore.result import KINDS, Beyond, Cell, Count, CrashCost, Explored, Failure, reduced
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.transcript import formatted, numbered
from statek_sim.trace import Event, ToolCalled, as_dict

EVERY: Final = 50
"""A run is repeated after this many runs, to check that runs are deterministic."""

AGENT_KINDS: Final = ("crashes", "orders", "limits", "faults", "moves")
"""The kinds of deviation for the agent engine, whose commits cannot be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of an exploration.

    `kinds` are from `result.KINDS`. `depth` is the number of deviations per run, 1 or 2. `orders`, `pairs` and
    `pct_runs` are maximum numbers of runs. Random orders aim to find bugs of depth `pct_depth` with probability
    `pct_probability`. `transcripts` records the events after each kill.
    """

    kinds: tuple[str, ...] = KINDS
    depth: int = 1
    orders: int = 200
    pairs: int = 2000
    pct_depth: int = 3
    pct_probability: float = 0.99
    pct_runs: int = 1000
    transcripts: bool = False


@dataclass(slots=True)
class _Found:
    """An exploration's findings so far."""

    reached: dict[str, bool]
    smallest: dict[str, tuple[tuple[Deviation, ...], str]] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    failing: list[tuple[str, tuple[Deviation, ...], int]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    runs: int = 0
    unknown: int = 0
    repeats: int = 0
    crash: CrashCost = field(default_factory=CrashCost)

    def note(self, deviations: tuple[Deviation, ...], found: Iterable[Violation]) -> None:
        """Record a run's violations; among equally small variations, the first one is reported."""
        for violation in found:
            name = violation.invariant
            self.failing.append((name, deviations, self.runs))
            self.times[name] = self.times.get(name, 0) + 1
            known = self.smallest.get(name)
            if known is None or len(deviations) < len(known[0]):
                self.smallest[name] = (deviations, violation.message)


def player_of(scenario: Scenario, profile: str) -> Player:
    """Return a scenario's player, after playing the base run."""
    # Without an agent-engine scenario, JSON Schema validation is not loaded.
    if scenario.engine == "agent":
        from statek_sim.explore.agent_player import AgentPlayer  # noqa: PLC0415

        return AgentPlayer(scenario, profile)
    from statek_sim.explore.statek_player import StatekPlayer  # noqa: PLC0415

    return StatekPlayer(scenario, profile)


class Explorer:
    """Explores one scenario under one profile; `invariants` are checked along with the built-in ones."""

    def __init__(
        self,
        scenario: Scenario,
        profile: str,
        invariants: Mapping[str, Invariant] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.bounds = bounds or Bounds()
        self.player = player_of(scenario, profile)
        self.base = self.player.base
        self._invariants = {**self.player.built_in, **(invariants or {})}
        self._found = _Found({name: False for name, check in self._invariants.items() if is_sometimes(check)})
        self._certificates = Certificates(self.player)

    @property
    def runs(self) -> int:
        """The number of runs so far."""
        return self._found.runs

    @property
    def failing(self) -> Sequence[tuple[str, tuple[Deviation, ...], int]]:
        """All violations in order of discovery: the invariant, the deviations, and the number of earlier runs."""
        return self._found.failing

    def explore(self) -> Explored:
        """Play all variations within the limits and return the result."""
        base, bounds, found = self.base, self.bounds, self._found
        every = self.player.singles(bounds.kinds)
        of = {kind: len(wanted) for kind, wanted in every.items()}
        of["crashes"] = len(distinct_points(base))
        proven = {kind: Count(sum(map(self._single, wanted)), of[kind]) for kind, wanted in every.items()}
        beyond = Beyond()
        if "orders" in bounds.kinds:
            proven["orders"], beyond = self._orders()
        beyond = self._combined(every, beyond)
        self._repeat_undisturbed()
        if "crashes" in bounds.kinds:
            self._two_owners()
        failures = tuple(self._failure(name) for name in found.smallest)
        return Explored(
            id=self.player.scenario.id,
            suite=self.player.scenario.suite,
            profile=self.player.profile,
            points=len(base.points),
            proven=proven,
            beyond=beyond,
            failures=failures,
            reached=dict(found.reached),
            unknown=found.unknown,
            repeats=found.repeats,
            runs=found.runs + 1,
            cells=tuple(found.cells),
            tools=self._certificates.of_tools(),
            crash=found.crash,
        )

    # -- playing -----------------------------------------------------------------------------------------------

    def play(self, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Play a variation and return its violations, including an engine failure."""
        try:
            with self.player.varied(deviations) as run:
                return violations(run, self._invariants)
        except Exception as error:  # noqa: BLE001  # a bug of the engine's is what we look for
            return (self.player.refused(deviations, error),)

    def _single(self, deviation: Deviation) -> bool:
        """Play a single deviation; return False if it is impossible in the scenario's world."""
        return self._try((deviation,))

    def _try(self, deviations: tuple[Deviation, ...]) -> bool:
        try:
            with self.player.varied(deviations) as run:
                self._visit(deviations, run)
        except Exception as error:  # noqa: BLE001  # a bug of the engine's is what we look for
            return self._failed(deviations, error)
        return True

    def _failed(self, deviations: tuple[Deviation, ...], error: Exception) -> bool:
        """Record the error that ended a run; return False if the deviations are impossible in the scenario's world."""
        if isinstance(error, Untimely):
            # The deviation moved an event to a time before its target exists.
            return False
        wrong = (self.player.refused(deviations, error),)
        self._found.runs += 1
        self._found.note(deviations, wrong)
        if _one_kill(deviations):
            self._found.cells.append(_cell(deviations[0], wrong[0].invariant))
        return True

    def _visit(self, deviations: tuple[Deviation, ...], run: Any) -> None:
        found = self._found
        found.runs += 1
        wrong = violations(run, self._invariants)
        if found.runs % EVERY == 0:
            wrong += self._repeated(run, deviations)
        found.note(deviations, wrong)
        found.unknown += not run.known
        for name, reached in found.reached.items():
            if not reached and self._invariants[name](run) is not None:
                found.reached[name] = True
        found.repeats += bool(run.effects - self.base.effects)
        if _one_kill(deviations):
            self._certificates.note(deviations[0], run, wrong)
            came = ",".join(sorted({one.invariant for one in wrong}))
            lines = after_death(deviations[0], run.events) if self.bounds.transcripts else ()
            found.cells.append(_cell(deviations[0], came or (run.came if run.known else "unknown"), lines))
            self._cost(deviations[0], run)

    def _cost(self, deviation: Deviation, run: Run) -> None:
        added = run.tokens - self.base.tokens
        if run.known and added > self._found.crash.tokens:
            self._found.crash = CrashCost(added, str(deviation))

    def _repeated(self, played: Run, deviations: Sequence[Deviation]) -> tuple[Violation, ...]:
        """Play a variation again; a difference between the two runs violates the invariant `REPEATS`.

        `deviations` include a picker's choices, so they reproduce the run.
        """
        self._found.runs += 1
        with self.player.varied(deviations) as again:
            return _differing(played, again)

    def _repeat_undisturbed(self) -> None:
        self._found.runs += 1
        try:
            wrong = _differing(self.base, self.player.again())
        except Exception as error:  # noqa: BLE001  # a bug of the engine's is what we look for
            wrong = (ended_by(error),)
        self._found.note((), wrong)

    def _two_owners(self) -> None:
        """Play the scenario with a second owner that does the same work, for the tools' certificates."""
        for run in self.player.two_owners():
            self._found.runs += 1
            self._certificates.note_two_owners(run, violations(run, self.player.built_in))

    # -- beyond single deviations ------------------------------------------------------------------------------

    def _orders(self) -> tuple[Count, Beyond]:
        """Play all orders up to the limit, and random orders beyond the limit."""
        bounds = self.bounds
        orders = explore_orders(self.player, bounds.orders, self._visit, self._failed)
        beyond = Beyond()
        if not orders.complete:
            probability = draw_orders(
                self.player,
                bounds.pct_runs,
                bounds.pct_depth,
                bounds.pct_probability,
                self._visit,
                self._failed,
            )
            beyond = Beyond(depth=bounds.pct_depth, probability=probability)
        return Count(orders.played, orders.known), beyond

    def _combined(self, singles: Mapping[str, Sequence[Deviation]], beyond: Beyond) -> Beyond:
        if self.bounds.depth >= 2:
            beyond = replace(beyond, pairs=self._pairs(singles))
        return beyond

    def _pairs(self, singles: Mapping[str, Sequence[Deviation]]) -> Count:
        """Play deviation pairs: first a crash and a later crash, then a crash and another deviation."""
        tried = 0
        known = 0
        crashes = singles.get("crashes", ())
        for first in crashes:
            for second in self._crashes_after(first):
                known += 1
                if tried < self.bounds.pairs:
                    tried += self._try((first, second))
        others = [one for kind in ("limits", "faults", "moves") for one in singles.get(kind, ())]
        for crash, other in product(crashes, others):
            known += 1
            if tried < self.bounds.pairs:
                tried += self._try((other, crash))
        return Count(tried, known)

    def _crashes_after(self, first: Deviation) -> list[Deviation]:
        """Return kills at the distinct points after a run's first crash."""
        self._found.runs += 1
        try:
            return self.player.crashes_after(first)
        except Exception as error:  # noqa: BLE001  # recorded when the first crash was played alone
            self.player.refused((first,), error)
            return []

    # -- failures ----------------------------------------------------------------------------------------------

    def _failure(self, name: str) -> Failure:
        deviations, message = self._found.smallest[name]
        if name != REPEATS:
            deviations = reduced(deviations, lambda parts: self.breaks(name, parts) is not None)
            message = self.breaks(name, deviations) or message
        return Failure(invariant=name, message=message, deviations=deviations, times=self._found.times[name])

    def breaks(self, name: str, deviations: Sequence[Deviation]) -> str | None:
        """Return how these deviations violate this invariant, or None if the invariant holds."""
        self._found.runs += 1
        try:
            found = self.play(deviations)
        except Untimely:
            return None
        return next((one.message for one in found if one.invariant == name), None)

    def replay(self, name: str, deviations: Sequence[Deviation]) -> tuple[str | None, Sequence[str]]:
        """Return how these deviations violate an invariant (or None), and the deviations that never applied."""
        if name != REPEATS:
            message = self.breaks(name, deviations)
            if message is not None:
                return message, ()
        with self.player.varied(deviations) as run:
            wrong = self._repeated(run, deviations) if name == REPEATS else ()
            return (wrong[0].message if wrong else None), run.absent


def _one_kill(deviations: Sequence[Deviation]) -> bool:
    return len(deviations) == 1 and deviations[0].action == "kill"


def after_death(deviation: Deviation, trace: Sequence[Event]) -> tuple[str, ...]:
    """Return a run's events after a kill as readable lines."""
    rest = [line for seq, line in numbered(trace) if seq >= deviation.kill]
    return tuple(formatted(rest, name_jobs=len({line.job for line in rest if line.job}) > 1))


def _cell(deviation: Deviation, came: str, lines: tuple[str, ...] = ()) -> Cell:
    what, _, job = deviation.what.rpartition(" of ")
    return Cell(deviation.kill, deviation.silent, what or deviation.what, job if what else "", came, lines)


def _differing(played: Run, again: Run) -> tuple[Violation, ...]:
    """Describe where two runs with the same deviations diverge, and the last tool call before that point."""
    if played.digest == again.digest:
        return ()
    return (Violation(REPEATS, _difference(played.events, again.events)),)


def _difference(events: Sequence[Event], again: Sequence[Event]) -> str:
    pairs = zip(events, again, strict=False)
    at = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        return f"a run has {len(events)} events, but its repetition has {len(again)}"
    tools = [event.name for event in events[:at] if isinstance(event, ToolCalled)]
    one, other = as_dict(events[at]), as_dict(again[at])
    fields = [key for key in one if one[key] != other.get(key)]
    difference = f"event {at + 1} ({one['event']}) differs in {', '.join(fields) or 'kind'}"
    return f"{difference}, after a call to tool {tools[-1]!r}" if tools else difference
