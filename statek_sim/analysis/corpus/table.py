"""The corpus's result: estimate / measured for every text and every place of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statek_sim.analysis.corpus.scenarios import CELLS, Cell, scenario_id
from statek_sim.analysis.corpus.texts import KINDS, text_of
from statek_sim.usage.analysis import UsageAnalysis, Use


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """One language or kind of text: its usage in every cell of the table."""

    key: str
    name: str
    uses: Mapping[Cell, Use]

    def ratio(self, cell: Cell) -> float:
        """Return estimate / measured."""
        use = self.uses[cell]
        return use.approx_tokens / use.measured_tokens

    def character_ratio(self, cell: Cell) -> float:
        """Return characters // 4 / measured."""
        use = self.uses[cell]
        return use.character_tokens / use.measured_tokens


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """All rows in the order of the corpus; `tokenizer` measured them."""

    rows: tuple[CorpusRow, ...]
    tokenizer: str


def corpus_table(analysis: UsageAnalysis) -> CorpusTable:
    """Return the table of an analysis of the whole corpus."""
    uses = {scenario.id: scenario.use for scenario in analysis.scenarios}
    rows = tuple(
        CorpusRow(
            key=key,
            name=text_of(key).name,
            uses={cell: uses[scenario_id(key, cell)] for cell in CELLS},
        )
        for key in KINDS
    )
    return CorpusTable(rows, analysis.overall.use.tokenizer)
