"""Dividing the exploration of one large scenario into shares that several workers play, and joining what came of them.

How many shares there are depends on the scenario alone, so that any number of workers finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.explore.certificates import worst
from statek_sim.explore.explorer import Bounds
from statek_sim.explore.plan import distinct_points
from statek_sim.explore.result import Count, CrashCost, Explored, Failure, ToolCertificate
from statek_sim.explore.variation import Undisturbed
from statek_sim.scenario.schema import Scenario

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


def shares_of(base: Undisturbed, bounds: Bounds) -> Shares:
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
