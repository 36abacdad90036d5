"""Packages beside the reference runtime, as text: what does not agree everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import AGAIN, Row, Verdict, VersionMatrix
from statek_sim.values import JSON

_LONGEST: Final = 600
"""Characters of a value that are shown."""


def matrix_lines(matrices: Sequence[VersionMatrix]) -> Iterator[str]:
    """Yield what differs, version by version, then the numbers."""
    for matrix in matrices:
        for row in matrix.rows:
            yield from _row_lines(matrix.version, row)
    for matrix in matrices:
        counts = ", ".join(
            f"{matrix.count(verdict)} {verdict}"
            for verdict in Verdict
            if verdict is not Verdict.VARIES or matrix.count(verdict)
        )
        yield (
            f"statek {matrix.version} (profile {matrix.profile}, Python {matrix.python}): "
            f"{len(matrix.rows)} scenarios: {counts}"
        )


DIFFERS_IN: Final = {
    Verdict.DIFFERS: "differs in",
    Verdict.VARIES: f"agreed in {AGAIN} processes of its own after it had differed, by chance, in",
}
"""How the sentence about a scenario with differences goes on."""


def _row_lines(version: str, row: Row) -> Iterator[str]:
    name = f"{row.scenario} on {version}"
    if row.verdict in (Verdict.DIFFERS, Verdict.VARIES):
        first, *more = row.differences
        yield f"{name}: {DIFFERS_IN[row.verdict]} {first.field}"
        yield from value_lines(first)
        if more:
            yield f"    also: {', '.join(difference.field for difference in more)}"
            if more and more[-1].field == "trace":
                yield "    first event that differs:"
                yield from value_lines(more[-1])


def value_lines(difference: Difference) -> Iterator[str]:
    """Yield both values of a field, from shortly before they differ."""
    ours, theirs = _shown(difference.reference), _shown(difference.installed)
    start = _common_start(ours, theirs)
    yield f"    reference: {_cut(ours, start)}"
    yield f"    installed: {_cut(theirs, start)}"


def _shown(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _common_start(left: str, right: str) -> int:
    """Return how much both have in common, less what is needed to see where they part."""
    same = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    return max(0, same - 80)


def _cut(text: str, start: int) -> str:
    shown = text[start : start + _LONGEST]
    return ("..." if start else "") + shown + ("..." if start + _LONGEST < len(text) else "")


NOT_RUN: Final = "-"
"""What stands where a scenario says nothing about a release."""
_WIDTH: Final = 100


def verdicts(matrices: Sequence[VersionMatrix]) -> dict[str, list[str]]:
    """Return every scenario's verdicts, one per release and in their order."""
    found: dict[str, list[str]] = {}
    for column, matrix in enumerate(matrices):
        for row in matrix.rows:
            found.setdefault(row.scenario, [NOT_RUN] * len(matrices))[column] = str(row.verdict)
    return found


def table_lines(matrices: Sequence[VersionMatrix]) -> Iterator[str]:
    """Yield a row per scenario that does not agree on every release it runs on."""
    found = verdicts(matrices)
    shown = {name: row for name, row in found.items() if set(row) - {str(Verdict.AGREE), NOT_RUN}}
    if shown:
        yield from _table([("scenario", *(matrix.version for matrix in matrices))], shown)
    alike = len(found) - len(shown)
    yield f"{alike} of {len(found)} scenarios agree on every release that they run on"


def _table(head: list[tuple[str, ...]], rows: dict[str, list[str]]) -> Iterator[str]:
    cells = [*head, *((name, *row) for name, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
