"""A job's counters: turns, exceptions and model usage.

A console error counts for the latest item that had run code or tools when the error was written. A tool error
counts for the item that contains the call. Only errors in LLM turns count. A turn without errors resets the
streak, and a turn with any number of errors increases it by one. `TurnCounters` keeps running counts, so
reading them takes constant time.

Up to 1.2.6, STATEK stored errors by console position, and counted every turn that began at such a position.
`PositionCounters` does the same.

Source: "Harness Policies", What the Limits Mean; behaviour 4.4, 5.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from statek_sim.runtime.state.access import StoredObject
from statek_sim.runtime.state.chat_log import ExecutionItem, LLM_LogItem, ToolError
from statek_sim.runtime.stored.ordering import SOMETHING, Shows, shown_members
from statek_sim.usage.token_usage import TurnUsage, approx_tokens


class TurnCounters:
    """Counts a job's turns, exceptions and longest streak of failing turns."""

    __slots__ = ("_closed", "_current", "_item", "_longest", "_streak", "_turns")

    def __init__(self) -> None:
        self._turns = 0
        self._closed = 0
        self._streak = 0
        self._longest = 0
        self._current: LLM_LogItem | None = None
        self._item: ExecutionItem | None = None

    def open(self, item: ExecutionItem) -> None:
        """Begin counting errors for `item`. If `item` is an LLM turn, the previous turn's count becomes final."""
        self._item = item
        if isinstance(item, LLM_LogItem):
            self._close()
            self._current = item
            self._turns += 1

    def record_error(self, _position: int) -> None:
        """Count one console error for the current item, if there is one."""
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
    def turns(self) -> int:
        """The number of LLM turns."""
        return self._turns

    @property
    def exceptions(self) -> int:
        """The number of exceptions in LLM turns."""
        return self._closed + (_errors(self._current) if self._current is not None else 0)

    @property
    def longest_streak(self) -> int:
        """The length of the longest streak of failing LLM turns so far."""
        if self._current is not None and _errors(self._current):
            return max(self._longest, self._streak + 1)
        return self._longest


class PositionCounters:
    """The counters up to 1.2.6.

    Turns that began at the same console position share that position's errors, which count once.
    """

    __slots__ = ("_items", "_positions")

    def __init__(self) -> None:
        self._items: list[LLM_LogItem] = []
        self._positions: set[int] = set()

    def open(self, item: ExecutionItem) -> None:
        """Record `item` if it is an LLM turn."""
        if isinstance(item, LLM_LogItem):
            self._items.append(item)

    def record_error(self, position: int) -> None:
        """Count an error for every turn at this console position, including future turns."""
        self._positions.add(position)

    @property
    def turns(self) -> int:
        """The number of LLM turns."""
        return len(self._items)

    @property
    def exceptions(self) -> int:
        """The number of exceptions in LLM turns."""
        return sum(map(self._errors, self._items))

    @property
    def longest_streak(self) -> int:
        """The length of the longest streak of failing LLM turns so far."""
        runs = groupby(self._items, key=lambda item: self._errors(item) > 0)
        return max((len(list(run)) for failing, run in runs if failing), default=0)

    def _errors(self, item: LLM_LogItem) -> int:
        return (item.console_pos in self._positions) + _tool_errors(item)


Counters = TurnCounters | PositionCounters
"""A job's turn and exception counters."""


def _errors(item: LLM_LogItem) -> int:
    return item.errors if item.tool_log is None else item.errors + _tool_errors(item)


def _tool_errors(item: LLM_LogItem) -> int:
    return 0 if item.tool_log is None else sum(isinstance(result, ToolError) for result in item.tool_log)


_MEMBERS: Final = (
    "pricing", "context_bytes", "total_bytes_sent", "total_bytes_received", "total_input_tokens", "total_cached_tokens",
    "total_output_tokens", "total_reported_cost",
)  # fmt: skip
"""The members of STATEK's class, in STATEK's order."""


class LLM_Usage(StoredObject):  # noqa: N801  # STATEK's own name
    """A job's running totals and per-turn figures. Sizes are in bytes."""

    __slots__ = (
        "total_bytes_received",
        "total_bytes_sent",
        "total_cached_tokens",
        "total_input_tokens",
        "total_measured_tokens",
        "total_output_tokens",
        "total_reported_cost",
        "turns",
    )

    def __store_members__(self, shows: Shows) -> dict[str, object]:
        """Return the members displayed to agents."""
        return shown_members({name: getattr(self, name, SOMETHING) for name in _MEMBERS}, shows)

    def __init__(self) -> None:
        self.total_bytes_sent = 0
        self.total_bytes_received = 0
        self.total_input_tokens = 0
        self.total_measured_tokens = 0
        self.total_output_tokens = 0
        self.total_cached_tokens = 0
        self.total_reported_cost: float | None = None
        self.turns: list[TurnUsage] = []

    @property
    def context_bytes(self) -> int:
        """The bytes sent and received."""
        return self.total_bytes_sent + self.total_bytes_received

    @property
    def approx_tokens(self) -> int:
        """The harness's estimate from the totals ("Harness Policies")."""
        return approx_tokens(self.total_bytes_sent, self.total_bytes_received)

    @property
    def total_cost(self) -> float | None:
        """The cost reported by the provider. In applications, the cost is computed from prices instead."""
        return self.total_reported_cost

    def add(self, turn: TurnUsage) -> None:
        """Add an answered LLM call; failed calls are never added (behaviour 5)."""
        self.total_bytes_sent += turn.bytes_sent
        self.total_bytes_received += turn.bytes_received
        self.total_measured_tokens += turn.measured_prompt + turn.measured_completion
        self.total_input_tokens += turn.reported_prompt or 0
        self.total_output_tokens += turn.reported_completion or 0
        self.total_cached_tokens += turn.reported_cached or 0
        if turn.reported_cost is not None:
            self.total_reported_cost = (self.total_reported_cost or 0.0) + turn.reported_cost
        self.turns.append(turn)
