"""A ledger of side effects: what agents did to the outside, in order, duplicates included."""

from __future__ import annotations

from collections.abc import Callable


class Ledger:
    """Append-only lines. Nothing a job does can take one back."""

    def __init__(self, *, changed: Callable[[str, str], None] | None = None) -> None:
        self.lines: list[str] = []
        self._changed = changed or (lambda _subject, _what: None)

    def write(self, line: str) -> None:
        """Record one side effect."""
        self.lines.append(line)
        self._changed("ledger", line)
