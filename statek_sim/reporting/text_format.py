"""Tables of plain lines and numbers for people: ASCII only, never wider than asked, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

NARROWEST: Final = 12
"""Columns that a first cell keeps, if it needs them."""

_GAP: Final = "  "
_CUT: Final = ".."


def fits(rows: Sequence[Sequence[Text]], *, width: int, first: int) -> bool:
    """Return whether the rows fit into `width` with `first` columns left for the first cell."""
    widths = _widths(rows)
    return min(first, widths[0]) + sum(widths[1:]) + len(_GAP) * (len(widths) - 1) <= width


def lay_out(rows: Sequence[Sequence[Text]], *, width: int) -> list[Text]:
    """Return one line per row. Cells stand right unless their `justify` is `left`.

    The first cell is shortened in its middle where a line would be wider than `width`, but to no less than
    `NARROWEST` columns: a name of which nothing is left helps nobody.
    """
    widths = _widths(rows)
    rest = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(width - rest, NARROWEST))
    return [_line(row, widths) for row in rows]


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` characters: `usage/a-very-lo..ame[docs]`."""
    if len(text) <= width:
        return text
    kept = max(width - len(_CUT), 0)
    tail = kept // 3
    return text[: kept - tail] + _CUT[:width] + (text[-tail:] if tail else "")


def _widths(rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]


def _line(row: Sequence[Text], widths: Sequence[int]) -> Text:
    cells: list[Text] = []
    for cell, width in zip(row, widths, strict=True):
        fitted = Text(shorten(cell.plain, width), style=cell.style)
        fitted.align("left" if cell.justify == "left" else "right", width)
        cells.append(fitted)
    line = Text(_GAP).join(cells)
    line.rstrip()
    return line


NOTHING: Final = "-"
"""What stands where there is no number."""


def count(value: int | None) -> str:
    """Return a whole number with thousands separators, `9,812`."""
    return NOTHING if value is None else f"{value:,}"


def signed(value: float) -> str:
    """Return a whole number with its sign, `+2,140`."""
    return f"{round(value):+,}"


def share(part: float, whole: float) -> str:
    """Return what `part` is of `whole`, `58%`."""
    return f"{part / whole:.0%}" if whole else NOTHING


def plural(number: int, noun: str) -> str:
    """Return the number and its noun, `1 turn` or `1,204 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ratio(value: float | None) -> str:
    """Return estimate / measured and which way the estimate is wrong: `x1.58 over`, `x0.57 under`, `x1.00`."""
    if value is None:
        return NOTHING
    return f"x{value:,.2f} {direction(value)}".rstrip()


def direction(value: float) -> str:
    """Return `over` or `under`, or nothing when two decimals show no difference."""
    rounded = round(value, 2)
    if rounded == 1:
        return ""
    return "over" if rounded > 1 else "under"


def seconds(value: float) -> str:
    """Return real time for people, `0.12s`."""
    return f"{value:,.2f}s"
