"""Columns of tables that are called like a credential: CSV, tabs, Markdown, and what database clients print."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

_SIGNS: Final = ",;|\t│"
_WIDEST: Final = 4_000
"""Characters of a line of a table."""
# What stands around the last word of a name that is all of a cell; Markdown's signs may be around it.
_BEFORE: Final = re.compile(rf"(?:^|[{_SIGNS}\n\">]) {{0,200}}[`*_]{{0,2}}(?:[\w.-]{{1,40}} ){{0,2}}\Z")
_BEHIND: Final = re.compile(rf"[`*_]{{0,2}}\"? {{0,200}}(?=[{_SIGNS}\r\n]|\Z)")
# A name has some words; a sentence has more between its commas.
_NAME: Final = re.compile(r"[\w.*#/`-]{0,60}(?: (?:\\\||[\w.*#/()`-]){1,60}){0,2}")
# The lines that Markdown and database clients draw.
_RULE: Final = re.compile(r"[-+|:=\s\u2500-\u257f]+")
# A quote, or a backslash before one, that is not around a cell ends the text that the table is in.
_CELLS: Final = {
    sign: re.compile(
        rf" *+(?:\"(?P<quoted>(?:[^\"\n]|\"\")*+)\" *+|(?P<plain>(?:[^{re.escape(sign)}\n\"\\]|\\[|])*+))\r?"
        rf"(?:(?P<sign>{re.escape(sign)})|\Z|(?=[\"\\]))"
    )
    for sign in _SIGNS
}
# Where a text starts that a document holds.
_INNER: Final = re.compile(rf"(?:[:\[,][ \t]?\\{{0,7}}\"|>)(?=\"?[^\",<>]{{0,80}}\"?[{_SIGNS}])")
_MOST_STARTS: Final = 10
"""Places of a line at which a table may start that a document holds."""

Place = tuple[int, int]
"""Where something starts in a text, and where it ends."""


def is_cell(text: str, start: int, end: int) -> bool:
    """Whether what stands there is all that is in a cell of a table, if this is one."""
    return (
        _BEHIND.match(text, end) is not None and _BEFORE.search(text, max(0, start - 201), start) is not None
    )


def columns_under(text: str, names: Iterable[int]) -> Iterator[tuple[Place, Place]]:
    """Yield the cells that stand under names, of which a word starts at these places: a name's place, and a cell's."""
    lines: dict[int, list[int]] = {}
    for name in names:
        start = text.rfind("\n", max(0, name - _WIDEST), name) + 1
        if start or name < _WIDEST:
            lines.setdefault(start, []).append(name)
    done = 0
    for start, named in lines.items():
        left, sign, heads = _heads(text, start) if start >= done else (start, "", [])
        if heads and left == start and _goes_on(text, start, sign, len(heads)):
            continue
        starts = [left for left, _ in heads]
        numbers = {bisect_right(starts, name) - 1 for name in named if heads and name >= starts[0]}
        at = _end_of_line(text, start) + 1
        while numbers and at < len(text):
            end = _end_of_line(text, at)
            if _RULE.fullmatch(text, at, end) is None:
                row = _cells(text, at, end, sign)
                if len(row) != len(heads):
                    break
                yield from ((heads[number], row[number]) for number in sorted(numbers))
            at = done = end + 1


def _heads(text: str, start: int) -> tuple[int, str, list[Place]]:
    """Return where a table's first line starts, what separates its cells, and these; none for what is no such line."""
    end = _end_of_line(text, start)
    inner = islice(_INNER.finditer(text, start, end), _MOST_STARTS)
    for at in (start, *(match.end() for match in inner)):
        sign = next((sign for sign in _SIGNS if text.find(sign, at, end) >= 0), "")
        cells = _cells(text, at, end, sign) if sign else []
        if len(cells) > 1 and all(_NAME.fullmatch(text, *cell) for cell in cells):
            return at, sign, cells
    return start, "", []


def _goes_on(text: str, start: int, sign: str, cells: int) -> bool:
    """Whether a line is not the first of its table: the one before it, but for drawn ones, has as many cells."""
    for _ in range(2):
        end = start - 1
        start = text.rfind("\n", max(0, end - _WIDEST), max(0, end)) + 1
        if end <= 0 or (start == 0 and end > _WIDEST):
            return False
        if _RULE.fullmatch(text, start, end) is None:
            return len(_cells(text, start, end, sign)) == cells
    return False


def _cells(text: str, start: int, end: int, sign: str) -> list[Place]:
    """Return where the cells of a line are, without quotes and blanks; none for what is no line of cells."""
    cells: list[Place] = []
    at, pattern = start, _CELLS[sign]
    while (cell := pattern.match(text, at, end)) is not None:
        left, right = cell.span("quoted" if cell["quoted"] is not None else "plain")
        cells.append((left, left + len(text[left:right].rstrip())))
        at = cell.end()
        if cell["sign"] is None:
            return cells
    return []


def _end_of_line(text: str, start: int) -> int:
    """Return where a line ends; of a long one, some place in it."""
    most = min(len(text), start + _WIDEST)
    end = text.find("\n", start, most)
    return end if end >= 0 else most
