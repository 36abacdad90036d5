"""A sweep for people: two heat maps, healthy scenarios stopped and tokens burnt, and the frontier in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.text import Text

from statek_sim.gate.sweep import Cell, Sweep
from statek_sim.gate.sweep_ranges import Axis
from statek_sim.harness.limits import LimitName
from statek_sim.reporting.grid import lay_out
from statek_sim.reporting.numbers import count, plural
from statek_sim.reporting.usage_terminal import paragraph

FRONTIER, CURRENT = "*", "="
"""Marks of cells: no other beats it; the preset's own values."""

_HEAT: Final = ("black on green", "black on yellow", "white on dark_orange3", "white on red")
"""From good to bad; numbers and marks say the same without colours."""

_GAP: Final = 2


class SweepProgress:
    """Shows how much of a sweep is done, on `console`, the standard error if none is given; on terminals only."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal and not console.is_dumb_terminal:
            columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=console, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("", total=None)

    def update(self, done: int, of: int) -> None:
        """Show how many pieces of the work are done."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=of)

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def sweep_lines(sweep: Sweep, *, width: int) -> Iterator[Text]:
    """Yield the heat maps and the frontier, no line wider than `width`."""
    if sweep.left:
        scenarios = plural(sweep.left, "scenario")
        yield from paragraph(
            f"stopped: {scenarios} not tried under every setting; the others follow", width, "yellow"
        )
    swept = " and ".join(axis.limit for axis in _axes(sweep))
    yield from paragraph(f"Sweep of {sweep.preset} [{sweep.profile}] over {swept}", width, "bold")
    yield from paragraph(
        f"{plural(sweep.healthy, 'healthy scenario')} against {plural(sweep.runaways, 'runaway')}; "
        f"{FRONTIER} no other setting is better in both, {CURRENT} the preset's own values",
        width,
        "dim",
    )
    yield Text()
    yield Text("Healthy scenarios stopped", "bold")
    yield from _map(sweep, lambda cell: str(len(cell.killed)), lambda cell: len(cell.killed), width)
    yield Text()
    yield Text("Measured tokens that runaways burn", "bold")
    yield from _map(sweep, lambda cell: short(cell.tokens), lambda cell: cell.tokens, width)
    yield Text()
    yield Text("Frontier", "bold")
    for place in sweep.frontier:
        yield from _point(sweep, sweep.cells[place], width)
    if sweep.current is not None and sweep.current not in sweep.frontier:
        yield Text("The preset's own values", "bold")
        yield from _point(sweep, sweep.cells[sweep.current], width)


def short(value: int) -> str:
    """Return a number in few characters: `950`, `12k`, `3.4M`."""
    if value < 1_000:
        return str(value)
    if value < 999_500:
        return f"{(value + 500) // 1_000}k"
    return f"{value / 1_000_000:.1f}M"


def _axes(sweep: Sweep) -> tuple[Axis, ...]:
    return (sweep.x,) if sweep.y is None else (sweep.x, sweep.y)


def _map(
    sweep: Sweep, shown: Callable[[Cell], str], heat: Callable[[Cell], int], width: int
) -> Iterator[Text]:
    """Yield one heat map, in blocks of as many columns as the width takes."""
    across, down = _turned(sweep)
    highest = max(map(heat, sweep.cells))
    cells = {
        (x, y): _text(sweep, place, shown, _style(heat(sweep.cells[place]), highest))
        for place, x, y in _placed(sweep, across)
    }
    widest = max(len(cell) for cell in (*cells.values(), *map(_value, across.values)))
    room = max(len(_row_name(down)), *(len(_value(value)) for value in (down or across).values))
    fitting = max(1, (width - room) // (widest + _GAP))
    for begin in range(0, len(across.values), fitting):
        values = across.values[begin : begin + fitting]
        yield Text(" " * (room + _GAP) + across.limit, "dim")
        rows = [[Text(_row_name(down), "dim"), *map(_value, values)]]
        rows += [
            [Text() if y is None else _value(y), *(cells[x, y] for x in values)]
            for y in ((None,) if down is None else down.values)
        ]
        yield from lay_out(rows, width=width)


def _turned(sweep: Sweep) -> tuple[Axis, Axis | None]:
    """Return which axis goes across and which down: the one with fewer values goes across."""
    if sweep.y is not None and len(sweep.y.values) < len(sweep.x.values):
        return sweep.y, sweep.x
    return sweep.x, sweep.y


def _placed(sweep: Sweep, across: Axis) -> Iterator[tuple[int, int, int | None]]:
    """Yield the place of every cell, with its values across and down."""
    for place, cell in enumerate(sweep.cells):
        x, y = cell.setting.x, cell.setting.y
        if across is sweep.x or y is None:
            yield place, x, y
        else:
            yield place, y, x


def _text(sweep: Sweep, place: int, shown: Callable[[Cell], str], style: str) -> Text:
    marks = FRONTIER * (place in sweep.frontier) + CURRENT * (place == sweep.current)
    return Text(shown(sweep.cells[place]) + marks, style)


def _style(heat: int, highest: int) -> str:
    return _HEAT[heat * (len(_HEAT) - 1) // highest] if highest else _HEAT[0]


def _value(value: int) -> Text:
    return Text(short(value) if value % 1_000 == 0 else str(value), "dim")


def _row_name(down: Axis | None) -> str:
    names = {
        LimitName.MAX_TURNS: "turns",
        LimitName.MAX_EXCEPTIONS: "exceptions",
        LimitName.MAX_CONSECUTIVE_EXCEPTIONS: "in a row",
        LimitName.MAX_TOKEN_USAGE: "tokens",
    }
    return "" if down is None else names[down.limit]


def _point(sweep: Sweep, cell: Cell, width: int) -> Iterator[Text]:
    words = [f"{sweep.x.limit} {count(cell.setting.x)}"]
    if sweep.y is not None:
        words.append(f"{sweep.y.limit} {count(cell.setting.y)}")
    money = "" if cell.cost is None else f" (${cell.cost:f})"
    does = f"stops {len(cell.killed)} of {sweep.healthy}, runaways burn {count(cell.tokens)} tokens{money}"
    yield from paragraph(f"{', '.join(words)}: {does}", width)
    for what, names in (("stops", cell.killed), ("does not stop", cell.unstopped)):
        if names:
            yield from paragraph(f"  {what} {_listed(names)}", width, "dim")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.rpartition("/")[2] for name in names)
