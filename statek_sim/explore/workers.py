"""Exploring many scenarios in worker processes: one piece of work is one scenario under one profile.

The exploration of one large scenario is divided into shares that several workers play, and what came of them is joined.
How many shares there are depends on the scenario alone, so that any number of workers finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from statek_sim import progress
from statek_sim.backends.setup import attribute_at
from statek_sim.errors import BadInput, StatekSimError
from statek_sim.executors.executor import Executor, ProcessExecutor
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed
from statek_sim.explore.certificates import worst
from statek_sim.explore.explorer import AGENT_KINDS, Bounds, Explorer
from statek_sim.explore.plan import distinct_points
from statek_sim.explore.player import REPEATS, SURVIVES, Invariant, Undeviating, is_sometimes, sometimes
from statek_sim.explore.result import Count, CrashCost, Explored, Failure, ToolCertificate
from statek_sim.scenario.schema import Scenario

T = TypeVar("T")

Pair = tuple[Scenario, str]
"""A scenario and the profile that it is explored under."""


NOT_VARIED: Final = f"of engine agent {', '.join(AGENT_KINDS)} are varied; expected one of them as --kind"


@dataclass(frozen=True, slots=True)
class _Work:
    """What a worker does: the scenario at a place of the list that it was started with."""

    pairs: Sequence[Pair]
    own: tuple[str, ...]
    bounds: Bounds

    def __call__(self, place: int, share: tuple[int, int] | None = None) -> Explored | Shares:
        """Explore it, or one share of it; return which shares it has where it has several and none is named."""
        progress.afresh()
        bounds = self.bounds if share is None else replace(self.bounds, share=share)
        return _explored(*self.pairs[place], self.own, bounds, _whole if share else _whole_or_shares)


def _whole(explorer: Explorer) -> Explored:
    return explorer.explore()


def _whole_or_shares(explorer: Explorer) -> Explored | Shares:
    shares = shares_of(explorer.base, explorer.bounds)
    return explorer.explore() if shares.number == 1 else shares


def own_invariants(names: Sequence[str]) -> dict[str, Invariant]:
    """Import the invariants that are written `module:attribute`; `BadInput` for what is none."""
    found: dict[str, Invariant] = {}
    for name in names:
        if ":" not in name:
            raise BadInput(
                f"--invariant {name!r}: expected 'module:attribute', a callable that takes a variation"
            )
        invariant = attribute_at("--invariant", name)
        if not callable(invariant):
            raise BadInput(f"--invariant {name!r}: expected a callable, got {invariant!r}")
        found[name] = _guarded(name, invariant)
    return found


class _InvariantFailed(StatekSimError):
    """A person's invariant raised, or answered something else. No `BadInput`: those of a variation are passed over."""


def _guarded(name: str, invariant: Invariant) -> Invariant:
    """Return an invariant whose own errors are told as such, and not as the runtime's."""

    def asked(variation: Any) -> str | None:
        try:
            answer: object = invariant(variation)
        except Exception as error:  # the user's code
            raise _InvariantFailed(
                f"--invariant {name!r}: it raised {type(error).__name__}: {error}"
            ) from error
        if answer is None or isinstance(answer, str):
            return answer
        if is_sometimes(invariant):
            return str(answer)
        raise _InvariantFailed(f"--invariant {name!r}: expected a text or None, got {type(answer).__name__}")

    return sometimes(asked) if is_sometimes(invariant) else asked


def explore_one(scenario: Scenario, profile: str, *, own: Sequence[str], bounds: Bounds) -> Explored:
    """Explore one scenario; what cannot be explored says why."""
    return _explored(scenario, profile, own, bounds, _whole)


def _explored(
    scenario: Scenario, profile: str, own: Sequence[str], bounds: Bounds, explore: Callable[[Explorer], T]
) -> T | Explored:
    agents = scenario.engine == "agent"
    if agents and not set(AGENT_KINDS) & set(bounds.kinds):
        return _not_explored(scenario, profile, NOT_VARIED)
    try:
        return explore(Explorer(scenario, profile, own_invariants(own), bounds))
    except _InvariantFailed as error:
        raise BadInput(str(error)) from None
    except BadInput as error:
        if not agents:
            raise
        # Parts of its agent cannot be kept.
        return _not_explored(scenario, profile, str(error))
    except StatekSimError as error:
        return _not_explored(scenario, profile, f"{type(error).__name__}: {error}")


def _not_explored(scenario: Scenario, profile: str, why: str) -> Explored:
    return Explored(id=scenario.id, suite=scenario.suite, profile=profile, points=0, proven={}, problem=why)


def explore_all(
    pairs: Sequence[Pair],
    *,
    own: Sequence[str] = (),
    bounds: Bounds | None = None,
    limits: WatchdogLimits | None = None,
    executor: Executor | None = None,
) -> Iterator[Explored]:
    """Yield what came of each pair, in their order; the same with any executor, None: a process per core.

    `own` are names of invariants, `limits` what one scenario may use of the machine.
    """
    came: dict[int, Explored] = {}
    wanted = 0
    every = explored_as_done(pairs, own=own, bounds=bounds, limits=limits, executor=executor)
    with closing(every):
        for place, explored in every:
            came[place] = explored
            while wanted in came:
                yield came.pop(wanted)
                wanted += 1


def explored_as_done(
    pairs: Sequence[Pair],
    *,
    own: Sequence[str] = (),
    bounds: Bounds | None = None,
    limits: WatchdogLimits | None = None,
    executor: Executor | None = None,
) -> Generator[tuple[int, Explored], None, None]:
    """Yield the place of each pair and what came of it: those that are divided into shares after all others.

    What seems to take longest comes first, of the pairs and of the shares, so that no process waits for the last one
    long.
    """
    work = _Work(pairs, tuple(own), bounds or Bounds())
    own_invariants(own)
    runs_it: Executor = ProcessExecutor() if executor is None else executor
    large: dict[int, Shares] = {}
    order = sorted(range(len(pairs)), key=lambda place: -size_of(pairs[place][0]))
    with closing(runs_it.map(work, ((place,) for place in order), limits=limits)) as came:
        for place, one in zip(order, came, strict=True):
            if isinstance(one, Shares):
                large[place] = one
            else:
                yield place, _come(pairs[place], one)
    yield from _in_shares(runs_it, work, large, limits)


def _in_shares(
    executor: Executor, work: _Work, large: Mapping[int, Shares], limits: WatchdogLimits | None
) -> Generator[tuple[int, Explored], None, None]:
    """Have all shares of the large scenarios explored; yield each scenario when its last share is there."""
    costliest = sorted(large, key=lambda place: -large[place].events)
    tasks = [
        (place, (number, large[place].number)) for place in costliest for number in range(large[place].number)
    ]
    found: dict[int, list[Explored | Killed]] = {place: [] for place in large}
    with closing(executor.map(work, tasks, limits=limits)) as came:
        for (place, _), one in zip(tasks, came, strict=True):
            assert not isinstance(one, Shares), "a share is not divided again"
            found[place].append(one)
            if len(found[place]) == large[place].number:
                yield place, _come(work.pairs[place], _whole_of(found.pop(place)))


def _whole_of(shares: Sequence[Explored | Killed]) -> Explored | Killed:
    """Return what came of all shares together; one that was killed is what came of all."""
    explored: list[Explored] = []
    for one in shares:
        if isinstance(one, Killed):
            return one
        explored.append(one)
    # One that cannot be explored says so in every share.
    return explored[0] if explored[0].problem is not None else joined(explored)


def _come(pair: Pair, one: Explored | Killed) -> Explored:
    return replace(_not_explored(*pair, str(one)), killed=True) if isinstance(one, Killed) else one


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a found case does now. `message`: how the invariant is broken, None when it holds: it is fixed.

    `absent` are deviations that the run gives no occasion for any more.
    """

    scenario: Scenario
    profile: str
    message: str | None
    absent: tuple[str, ...] = ()

    @property
    def fixed(self) -> bool:
        """Whether the invariant holds now."""
        return self.message is None


def replay(scenario: Scenario) -> Replayed:
    """Play a found case again. `BadInput` for a scenario that says no `violates`."""
    where = f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}"
    name = scenario.violates
    if not name:
        raise BadInput(f"{where}: 'violates' is missing: expected the invariant that its deviations break")
    known = {*_built_in(scenario), REPEATS, SURVIVES}
    if ":" not in name and name not in known:
        raise BadInput(f"{where}: violates: {name!r} is no invariant; there are {', '.join(sorted(known))}")
    own = own_invariants([name]) if ":" in name else {}
    profile = scenario.profiles[0]
    try:
        message, absent = Explorer(scenario, profile, own).replay(name, scenario.deviations)
    except _InvariantFailed as error:
        raise BadInput(f"{where}: {error}") from None
    except StatekSimError:
        raise
    except Exception as error:
        # The engine fails without any deviation.
        if name != SURVIVES:
            raise
        message, absent = f"{type(error).__name__}: {error}", ()
    return Replayed(scenario, profile, message, tuple(absent))


def _built_in(scenario: Scenario) -> Mapping[str, Invariant]:
    # What engine two checks arguments with is not loaded for those who have no scenario of it.
    if scenario.engine == "agent":
        from statek_sim.explore.agent_variation import AGENT_INVARIANTS  # noqa: PLC0415

        return AGENT_INVARIANTS
    from statek_sim.explore.invariants import BUILT_IN  # noqa: PLC0415

    return BUILT_IN


SHARE: Final = 100_000
"""Events that one share plays at most, were every run as long as the undisturbed one."""


_ENDLESS: Final = 10
"""Turns that a reply without end is taken for."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How many shares a scenario is divided into, and about how many events each of them plays."""

    number: int
    events: int


def size_of(scenario: Scenario) -> int:
    """Return about how long exploring a scenario takes beside others: what its text shows, before anything is played.

    A run takes as long as it has replies, and there are as many crash points.
    """
    replies = (reply.repeat for given in scenario.script.values() for reply in given)
    turns = sum(_ENDLESS if repeat == "forever" else repeat for repeat in replies)
    return (turns + len(scenario.events) + len(scenario.jobs)) ** 2


def shares_of(base: Undeviating, bounds: Bounds) -> Shares:
    """Return which shares the crashes of a scenario are worth; one where combinations need all of them together."""
    if bounds.depth > 1 or bounds.only is not None or "crashes" not in bounds.kinds:
        return Shares(1, len(base.events))
    kills = len(distinct_points(base))
    events = kills * len(base.events)
    number = max(1, min(kills, events // SHARE))
    return Shares(number, events // number)


def joined(shares: Sequence[Explored]) -> Explored:
    """Return what came of all shares, in their order, as one; runs are all that were played."""
    last = shares[-1]
    crashes = Count(sum(one.proven["crashes"].tried for one in shares), last.proven["crashes"].of)
    return replace(
        last,
        proven={**last.proven, "crashes": crashes},
        failures=_failures(one for part in shares for one in part.failures),
        reached={name: any(one.reached[name] for one in shares) for name in last.reached},
        unknown=sum(one.unknown for one in shares),
        repeats=sum(one.repeats for one in shares),
        runs=sum(one.runs for one in shares),
        cells=tuple(cell for one in shares for cell in one.cells),
        tools=tuple(_certificate(same) for same in zip(*(one.tools for one in shares), strict=True)),
        crash=_crash([one.crash for one in shares]),
    )


def _failures(found: Iterable[Failure]) -> tuple[Failure, ...]:
    """Return one failure of each invariant: the first of the smallest."""
    smallest: dict[str, Failure] = {}
    for one in found:
        known = smallest.setdefault(one.invariant, replace(one, times=0))
        first = one if len(one.deviations) < len(known.deviations) else known
        smallest[one.invariant] = replace(first, times=known.times + one.times)
    return tuple(smallest.values())


def _certificate(same: Sequence[ToolCertificate]) -> ToolCertificate:
    return replace(
        same[0],
        before=worst(one.before for one in same),
        during=worst(one.during for one in same),
        after=worst(one.after for one in same),
        twice=worst(one.twice for one in same),
        owners=worst(one.owners for one in same),
    )


def _crash(costs: Sequence[CrashCost]) -> CrashCost:
    most = max(costs, key=lambda one: one.tokens)
    dearest = max(costs, key=lambda one: one.cost)
    priced = all(one.priced for one in costs)
    return replace(most, cost=dearest.cost, cost_where=dearest.cost_where, priced=priced)
