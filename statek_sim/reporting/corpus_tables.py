"""The corpus's table: how far the estimate is off, by language and kind of text, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from statek_sim.analysis.corpus_model import CELLS, TURNS, Cell, CorpusTable
from statek_sim.reporting.tables import DIRECTION_STYLES
from statek_sim.reporting.text_format import direction, lay_out, signed
from statek_sim.reporting.usage_text import PROXY, escaped, markdown_table, paragraph
from statek_sim.usage.waterfall import STEPS

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
    yield from lay_out(_ratio_rows(table), width=width)
    if "(proxy)" in table.tokenizer:
        yield from paragraph(PROXY, width, "dim")
    yield Text()
    yield Text("Where the difference comes from", "bold")
    yield from paragraph(_SHARES, width, "dim")
    yield from lay_out(_share_rows(table), width=width)


def corpus_markdown(table: CorpusTable) -> str:
    """Return both tables as Markdown."""
    head = ("text", *(f"{_turns(cell)}{' with tools' if cell.tools else ''}" for cell in CELLS), "chars//4")
    ratios = [
        [row.name, *(f"{row.ratio(cell):.2f}" for cell in CELLS), f"{row.character_ratio(LONGEST):.2f}"]
        for row in table.rows
    ]
    shares = [[row.name, *_shares(table, index)] for index, row in enumerate(table.rows)]
    blocks = (
        "# The same dialogue in many kinds of text",
        f"{_RATIOS[:1].upper()}{_RATIOS[1:]}. Measured with {escaped(table.tokenizer)}.",
        markdown_table(head, ratios),
        f"{_SHARES[:1].upper()}{_SHARES[1:]}:",
        markdown_table(("text", *STEPS[1:]), shares),
    )
    return "\n\n".join(blocks) + "\n"


def _ratio_rows(table: CorpusTable) -> list[list[Text]]:
    plain, tools = (cell for cell in CELLS if cell.turns == TURNS[0])
    group = {plain: "no tools", tools: "tools"}
    first = [Text(), *(Text(group.get(cell, ""), "bold") for cell in CELLS), Text()]
    heads = [_turns(cell) if cell in group else str(cell.turns) for cell in CELLS]
    second = [_left("text", "bold"), *(Text(head, "bold") for head in [*heads, "chars//4"])]
    rows = [first, second]
    for row in table.rows:
        figures = [*(row.ratio(cell) for cell in CELLS), row.character_ratio(LONGEST)]
        rows.append([_left(row.name), *(_ratio(figure) for figure in figures)])
    return rows


def _share_rows(table: CorpusTable) -> list[list[Text]]:
    rows = [[_left("text", "bold"), *(Text(step, "bold") for step in STEPS[1:])]]
    rows += [[_left(row.name), *map(Text, _shares(table, at))] for at, row in enumerate(table.rows)]
    return rows


def _shares(table: CorpusTable, index: int) -> list[str]:
    use = table.rows[index].uses[_WITH_TOOLS]
    return [f"{signed(100 * getattr(use.waterfall, step) / use.measured_tokens)}%" for step in STEPS[1:]]


def _turns(cell: Cell) -> str:
    return f"{cell.turns} turn" if cell.turns == 1 else f"{cell.turns} turns"


def _ratio(value: float) -> Text:
    return Text(f"{value:.2f}", DIRECTION_STYLES[direction(value)])


def _left(text: str, style: str = "") -> Text:
    return Text(text, style, justify="left")
