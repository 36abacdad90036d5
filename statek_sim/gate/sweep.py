"""A preset's limits swept over ranges: how many healthy jobs each setting stops, and what runaways burn under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from statek_sim.gate.sweep_ranges import Axis
from statek_sim.harness.limits import HarnessLimits, LimitName


@dataclass(frozen=True, slots=True)
class Setting:
    """One value on each axis; `y` is None where only one limit is swept."""

    x: int
    y: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one scenario under one setting.

    `stopped`: a limit stopped one of its jobs. `unstopped`: one of the jobs that go bad was not stopped by a limit.
    `tokens` are measured ones, from the turn on which jobs go bad; `cost` is None without prices.
    """

    stopped: bool
    unstopped: bool
    tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One scenario under every setting, in the order of the settings. `name` is `suite/scenario`."""

    name: str
    runaway: bool
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one setting does: which healthy scenarios it stops, what runaways burn, which of them it does not stop."""

    setting: Setting
    killed: tuple[str, ...]
    unstopped: tuple[str, ...]
    tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All settings of a sweep of one preset. `x` is the first axis; cells go through it row by row of `y`.

    `frontier` are the places of those cells which no other cell beats: one that stops fewer healthy scenarios has
    runaways burn more. Among cells that do the same it is the one with the lowest limits. `current` is the cell that
    has the preset's own values, None when the sweep leaves them out. `left` are the scenarios that were not tried under
    every setting when the sweep was stopped, and count nowhere.
    """

    preset: str
    profile: str
    x: Axis
    y: Axis | None
    healthy: int
    runaways: int
    cells: tuple[Cell, ...]
    frontier: tuple[int, ...]
    current: int | None
    left: int = 0


def settings(x: Axis, y: Axis | None) -> tuple[Setting, ...]:
    """Return every setting of a sweep, in the order of its cells."""
    rows: Sequence[int | None] = (None,) if y is None else y.values
    return tuple(Setting(value, row) for row in rows for value in x.values)


def limits_of(
    setting: Setting, base: HarnessLimits, x: Axis, y: Axis | None, stated: Mapping[str, int | None]
) -> HarnessLimits:
    """Return the limits of a preset with a setting's values in their places, and over them what a scenario states."""
    changes: dict[str, int | None] = {x.limit.value: setting.x}
    if y is not None:
        changes[y.limit.value] = setting.y
    return replace(base, **{**changes, **stated})  # type: ignore[arg-type]  # the limits' own names


def sweep(
    tried: Sequence[Tried], base: HarnessLimits, x: Axis, y: Axis | None, *, preset: str, profile: str
) -> Sweep:
    """Return the sweep that scenarios under all settings make together."""
    healthy = [workload for workload in tried if not workload.runaway]
    runaways = [workload for workload in tried if workload.runaway]
    every = settings(x, y)
    cells = tuple(_cell(setting, place, healthy, runaways) for place, setting in enumerate(every))
    return Sweep(
        preset=preset,
        profile=profile,
        x=x,
        y=y,
        healthy=len(healthy),
        runaways=len(runaways),
        cells=cells,
        frontier=frontier(cells),
        current=_place_of(every, base, x, y),
    )


def frontier(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Return the places of the cells that no other cell beats, fewest healthy scenarios stopped first."""
    # Sorted, a cell is beaten exactly by those before it that burn no more.
    ranked = sorted(range(len(cells)), key=lambda place: (*_merit(cells[place]), place))
    found: list[int] = []
    for place in ranked:
        if not found or _merit(cells[place])[1] < _merit(cells[found[-1]])[1]:
            found.append(place)
    return tuple(found)


def _merit(cell: Cell) -> tuple[int, int]:
    return len(cell.killed), cell.tokens


def _cell(setting: Setting, place: int, healthy: Sequence[Tried], runaways: Sequence[Tried]) -> Cell:
    burnt = [workload.outcomes[place] for workload in runaways]
    costs = [outcome.cost for outcome in burnt if outcome.cost is not None]
    return Cell(
        setting=setting,
        killed=tuple(workload.name for workload in healthy if workload.outcomes[place].stopped),
        unstopped=tuple(workload.name for workload in runaways if workload.outcomes[place].unstopped),
        tokens=sum(outcome.tokens for outcome in burnt),
        cost=sum(costs, Decimal()) if costs else None,
    )


def _place_of(every: Sequence[Setting], base: HarnessLimits, x: Axis, y: Axis | None) -> int | None:
    own = Setting(_value(base, x.limit), None if y is None else _value(base, y.limit))
    return every.index(own) if own in every else None


def _value(limits: HarnessLimits, limit: LimitName) -> int:
    value: int | None = getattr(limits, limit.value)
    return -1 if value is None else value
