"""Per-job exception counters, kept up to date instead of recounted (000, What the Limits Mean; behaviour 4.4).

A console error belongs to the execution item that was the last one in the chat log when it was written; a tool
error to the item whose call failed. Only LLM turns count. A turn without an error resets the streak, a turn with
several adds one to it. Reading a counter costs the same after 5 turns and after 5,000.
"""

from __future__ import annotations

from statek_sim.runtime.chat_log import ExecutionItem, LLM_LogItem, ToolError


class TurnCounters:
    """Turns, exceptions and the longest streak of failing turns of one job."""

    __slots__ = ("_closed", "_current", "_item", "_longest", "_streak", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self._closed = 0
        self._streak = 0
        self._longest = 0
        self._current: LLM_LogItem | None = None
        self._item: ExecutionItem | None = None

    def open(self, item: ExecutionItem) -> None:
        """Make `item` the one that errors belong to; the turn before it is final."""
        self._item = item
        if isinstance(item, LLM_LogItem):
            self._close()
            self._current = item
            self.turns += 1

    def record_error(self) -> None:
        """Count one console error for the current item; before any item it belongs to none."""
        if self._item is not None:
            self._item.errors += 1

    def _close(self) -> None:
        if self._current is None:
            return
        errors = _errors(self._current)
        self._closed += errors
        self._streak = self._streak + 1 if errors else 0
        self._longest = max(self._longest, self._streak)

    @property
    def exceptions(self) -> int:
        """All exceptions of LLM turns."""
        return self._closed + (_errors(self._current) if self._current is not None else 0)

    @property
    def longest_streak(self) -> int:
        """The longest run of consecutive failing LLM turns so far."""
        if self._current is not None and _errors(self._current):
            return max(self._longest, self._streak + 1)
        return self._longest


def _errors(item: LLM_LogItem) -> int:
    if item.tool_log is None:
        return item.errors
    return item.errors + sum(1 for result in item.tool_log if isinstance(result, ToolError))
