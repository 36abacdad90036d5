"""Long rows in pieces, so that a commit writes what changed of them: most of them grow at their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from statek_sim.errors import Damaged

PIECE: Final = 8192
"""Characters of one piece; a row has only ASCII, so that these are bytes."""

MARK: Final = "#"
"""Between the name of a row and the number of a piece that is not its first; no row's own name has it."""


def changed_pieces(name: str, before: str | None, now: str) -> tuple[dict[str, str], list[str]]:
    """Return the pieces of a row that are new or other, by name, and the names of those that are gone."""
    old = "" if before is None else before
    changed = {}
    for first in range(0, max(len(now), 1), PIECE):
        piece = now[first : first + PIECE]
        if before is None or first >= len(old) or piece != old[first : first + PIECE]:
            changed[_named(name, first)] = piece
    first_gone = -(-len(now) // PIECE) * PIECE
    return changed, [_named(name, first) for first in range(max(first_gone, PIECE), len(old), PIECE)]


def all_pieces(name: str, row: str) -> list[str]:
    """Return the names of the pieces of a row."""
    return [_named(name, first) for first in range(0, max(len(row), 1), PIECE)]


def whole_rows(pieces: Mapping[str, str]) -> dict[str, str]:
    """Return the rows that these pieces are of, by name; `Damaged` where one is missing."""
    further: dict[str, dict[int, str]] = {}
    rows: dict[str, str] = {}
    for name, text in pieces.items():
        row, mark, number = name.partition(MARK)
        if mark and number.isdecimal():
            further.setdefault(row, {})[int(number)] = text
        else:
            rows[row] = text
    for row, texts in further.items():
        if row not in rows or sorted(texts) != [*range(1, len(texts) + 1)]:
            raise Damaged(f"row {row!r}: a piece of it is missing; put a copy of the store back")
        rows[row] += "".join(texts[number] for number in sorted(texts))
    return rows


def _named(name: str, first: int) -> str:
    return f"{name}{MARK}{first // PIECE}" if first else name
