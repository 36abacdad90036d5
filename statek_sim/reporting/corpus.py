"""The corpus's table: how far the estimate is off, by language and kind of text, for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rich.text import Text

from statek_sim.analysis.corpus_model import CELLS, TURNS, Cell, CorpusTable
from statek_sim.reporting.report_text import DIRECTION_STYLES
from statek_sim.reporting.table import Rows, Table, escaped, paragraph
from statek_sim.reporting.text_format import direction, signed
from statek_sim.reporting.usage import PROXY
from statek_sim.usage.breakdown import STEPS

LONGEST: Final = Cell(TURNS[-1], tools=False)
"""The cell that `chars//4` is about."""

_WITH_TOOLS: Final = Cell(TURNS[-1], tools=True)
"""The cell whose steps are shown: it has all of them."""

_RATIOS: Final = (
    "estimate / measured for the same dialogue of 1, 5 and 20 turns: above 1 the harness stops a job early, below 1 "
    "late; chars//4 likewise, 20 turns without tools"
)
_SHARES: Final = "what each step of the waterfall adds, in % of the measured tokens; 20 turns with tools"


def corpus_lines(table: CorpusTable, *, width: int) -> Iterator[Text]:
    """Yield the two tables: the ratios, and where they come from."""
    yield Text("The same dialogue in many kinds of text", "bold")
    yield from paragraph(f"{_RATIOS}; measured with {table.tokenizer}", width, "dim")
    heads = [f"{cell.turns}{' + tools' if cell.tools else ''}" for cell in CELLS]
    yield from replace(_ratio_table(table), head=("turns", *heads, "chars//4")).lines(width=width)
    if "(proxy)" in table.tokenizer:
        yield from paragraph(PROXY, width, "dim")
    yield Text()
    yield Text("Where the difference comes from", "bold")
    yield from paragraph(_SHARES, width, "dim")
    yield from _share_table(table).lines(width=width)


def corpus_markdown(table: CorpusTable) -> str:
    """Return both tables as Markdown."""
    blocks = (
        "# The same dialogue in many kinds of text",
        f"{_RATIOS[:1].upper()}{_RATIOS[1:]}. Measured with {escaped(table.tokenizer)}.",
        _ratio_table(table).markdown(),
        f"{_SHARES[:1].upper()}{_SHARES[1:]}:",
        _share_table(table).markdown(),
    )
    return "\n\n".join(blocks) + "\n"


def _ratio_table(table: CorpusTable) -> Table:
    cells = [f"{_turns(cell)}{' with tools' if cell.tools else ''}" for cell in CELLS]
    rows: Rows = [
        [row.name, *map(_ratio, (*(row.ratio(cell) for cell in CELLS), row.character_ratio(LONGEST)))]
        for row in table.rows
    ]
    return Table(head=("text", *cells, "chars//4"), rows=rows)


def _share_table(table: CorpusTable) -> Table:
    rows = [[row.name, *_shares(table, at)] for at, row in enumerate(table.rows)]
    return Table(head=("text", *STEPS[1:]), rows=rows)


def _shares(table: CorpusTable, index: int) -> list[str]:
    use = table.rows[index].uses[_WITH_TOOLS]
    return [f"{signed(100 * getattr(use.waterfall, step) / use.measured_tokens)}%" for step in STEPS[1:]]


def _turns(cell: Cell) -> str:
    return f"{cell.turns} turn" if cell.turns == 1 else f"{cell.turns} turns"


def _ratio(value: float) -> Text:
    return Text(f"{value:.2f}", DIRECTION_STYLES[direction(value)])
