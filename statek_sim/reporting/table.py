"""A table that can be rendered for a terminal and as GitHub-flavoured Markdown.

In a terminal, a table is ASCII only, the same on every machine, and no wider than the given width unless an id is
longer.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from rich.text import Text

NARROWEST: Final = 12
"""The minimum width of the first column if its cells are that long."""

_GAP: Final = "  "
_CUT: Final = ".."
_SPECIAL: Final = re.compile(r"[`*\[\]<>|~#]|(?<!\w)_|_(?!\w)|\\(?=[!-/:-@\[-`{-~])")
"""Matches characters that Markdown would interpret: an underscore only at the start or end of a word, a backslash only
before punctuation.
"""


Rows = Sequence[Sequence[str | Text]]


class Code(str):
    """A cell rendered as code in Markdown."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with a header and rows of cells; Markdown keeps only the bold style of `Text` cells.

    The first column and those with headers in `left` are left-aligned; the others contain numbers and are
    right-aligned.
    """

    head: Sequence[str]
    rows: Rows
    left: Collection[str] = ()

    def only(self, heads: Collection[str]) -> Self:
        """Return the table with only its first column and the columns with these headers."""
        kept = [at for at, head in enumerate(self.head) if not at or head in heads]
        rows = [[row[at] for at in kept] for row in self.rows]
        return replace(self, head=[self.head[at] for at in kept], rows=rows)

    def widest(self, choices: Sequence[Collection[str]], *, width: int, first: int) -> Self:
        """Return the table with the first set of columns in `choices` that fits into `width`, or else the last."""
        tables = [self.only(heads) for heads in choices]
        return next((table for table in tables if table.fits(width=width, first=first)), tables[-1])

    def fits(self, *, width: int, first: int) -> bool:
        """Return whether the table fits into `width` with at least `first` characters for the first column."""
        widths = self._widths()
        return min(first, widths[0]) + sum(widths[1:]) + len(_GAP) * (len(widths) - 1) <= width

    def lines(self, *, width: int) -> list[Text]:
        """Return the header and a line per row.

        A first cell that does not fit goes on its own line above the rest of the row, because ids are never cut.
        """
        widths = self._widths()
        rest = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
        widths[0] = min(widths[0], max(width - rest, NARROWEST))
        head = [Text(name, "bold") for name in self.head]
        return [line for row in (head, *self.rows) for line in self._folded(row, widths)]

    def markdown(self) -> str:
        """Return the table as Markdown, with cells escaped so they appear literally."""
        rule = [":---" if self._is_left(at) else "---:" for at in range(len(self.head))]
        head, *cells = [list(map(_markdown_cell, row)) for row in (self.head, *self.rows)]
        return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *cells))

    def _is_left(self, at: int) -> bool:
        return not at or self.head[at] in self.left

    def _widths(self) -> list[int]:
        return [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]

    def _folded(self, row: Sequence[str | Text], widths: Sequence[int]) -> Iterator[Text]:
        first, *others = row
        if len(first) > widths[0]:
            yield first if isinstance(first, Text) else Text(first)
            first = ""
        yield self._line([first, *others], widths)

    def _line(self, row: Sequence[str | Text], widths: Sequence[int]) -> Text:
        cells: list[Text] = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            fitted = cell.copy() if isinstance(cell, Text) else Text(cell)
            fitted.align("left" if self._is_left(at) else "right", width)
            cells.append(fitted)
        line = Text(_GAP).join(cells)
        line.rstrip()
        return line


def _markdown_cell(cell: str | Text) -> str:
    if isinstance(cell, Code):
        return code(cell)
    if isinstance(cell, Text) and "bold" in str(cell.style):
        return f"**{escaped(cell.plain)}**"
    return escaped(str(cell))


def shorten(text: str, width: int) -> str:
    """Shorten `text` to at most `width` characters, such as `usage/a-very-lo..ame[docs]`."""
    if len(text) <= width:
        return text
    kept = max(width - len(_CUT), 0)
    tail = kept // 3
    return text[: kept - tail] + _CUT[:width] + (text[-tail:] if tail else "")


def paragraph(text: str, width: int, style: str = "") -> Iterator[Text]:
    """Yield a string as lines of at most `width` columns."""
    for line in textwrap.wrap(text, max(width, 40), break_on_hyphens=False, break_long_words=False):
        yield Text(line, style)


def escaped(text: str) -> str:
    """Escape `text` for a Markdown table or sentence."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def code(text: str) -> str:
    """Return `text` on one line as Markdown code; text with a backtick is only escaped."""
    plain = " ".join(text.split())
    return escaped(plain) if "`" in plain else "`" + plain.replace("|", "\\|") + "`"


def as_sentence(text: str) -> str:
    """Return words as a Markdown sentence with a capital letter and a full stop."""
    return f"{escaped(text[:1].upper() + text[1:])}."
