"""A document as plain text of at most 100 columns, fit to be pasted into a ticket, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from statek_sim.compare.document import Block, Heading, Outcomes, Paragraph, Table

WIDTH: Final = 100
_INDENT: Final = {1: 0, 2: 2, 3: 6}
"""Columns before a paragraph, by its level."""


def text_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield a document as plain text, line by line."""
    for block in blocks:
        match block:
            case Heading(3, text):
                yield ""
                yield from _wrapped(text, indent=2, hanging=4)
            case Heading(level, text):
                yield from ("", "") if level > 1 else ()
                yield from (text, ("=" if level == 1 else "-") * len(text))
            case Paragraph(text, level):
                yield from ("",) if level < max(_INDENT) else ()
                yield from _wrapped(
                    text, indent=_INDENT[level], hanging=_INDENT[level] + (2 if level > 1 else 0)
                )
            case Table(rows):
                yield ""
                yield from _text_table(rows)
            case Outcomes(before, after, aspects):
                width = max(len(before), len(after))
                for aspect in aspects:
                    for side, words in ((before, aspect.before), (after, aspect.after)):
                        sentence = f"{side:<{width}}  {aspect.sentence(words)}"
                        yield from _wrapped(sentence, indent=6, hanging=6 + width + 2)


def markdown_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield a document as Markdown, line by line."""
    for block in blocks:
        match block:
            case Heading(level, text):
                yield f"{'#' * level} {_escaped(text)}"
            case Paragraph(text):
                yield _escaped(text)
            case Table(rows):
                yield from _markdown_table(rows)
            case Outcomes(before, after, aspects):
                told = [(aspect.about, aspect.before, aspect.after) for aspect in aspects]
                yield from _markdown_table([("", before, after), *told])
        yield ""


def _text_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table: the first and the last column are text, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *numbers, last in rows:
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=False)]
        yield "  ".join((first.ljust(widths[0]), *cells, last)).rstrip()


def _markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = rows
    for row in (head, ["---"] * len(head), *body):
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    """Return text that a table's cell and a heading can hold."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _wrapped(text: str, *, indent: int, hanging: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
