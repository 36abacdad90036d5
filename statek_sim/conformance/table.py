"""The matrix of scenarios and releases as a table: what does not agree everywhere, the reasons once each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from statek_sim.conformance.matrix import Verdict, VersionMatrix

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
    """Yield a row per scenario that does not agree on every release it runs on, then the reasons."""
    found = verdicts(matrices)
    shown = {name: row for name, row in found.items() if set(row) - {str(Verdict.AGREE), NOT_RUN}}
    if shown:
        yield from _table([("scenario", *(matrix.version for matrix in matrices))], shown)
    alike = len(found) - len(shown)
    yield f"{alike} of {len(found)} scenarios agree on every release that they run on"
    for (verdict, reason), names in _reasons(matrices).items():
        yield from wrap(
            f"{verdict}: {reason} ({', '.join(names)})",
            _WIDTH,
            subsequent_indent="    ",
            break_on_hyphens=False,
        )


def _table(head: list[tuple[str, ...]], rows: dict[str, list[str]]) -> Iterator[str]:
    cells = [*head, *((name, *row) for name, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _reasons(matrices: Sequence[VersionMatrix]) -> dict[tuple[str, str], list[str]]:
    """Return the scenarios per verdict and reason, each once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for matrix in matrices:
        for row in matrix.rows:
            names = reasons.setdefault((str(row.verdict), row.reason), []) if row.reason else []
            if row.scenario not in names:
                names.append(row.scenario)
    return reasons
