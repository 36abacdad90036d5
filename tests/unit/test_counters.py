from __future__ import annotations

from datetime import datetime

from statek_sim.runtime.state.chat_log import (
    CallSpec,
    CodeBlock,
    LLM_LogItem,
    ToolError,
    ToolResult,
    WarmupLogItem,
)
from statek_sim.runtime.state.counters import PositionCounters, TurnCounters
from tests.tables import table_test

NOW = datetime(2026, 1, 1)


def turn(*results: ToolResult, position: int = 0) -> LLM_LogItem:
    calls = tuple(CallSpec(str(n), "f") for n, _ in enumerate(results))
    return LLM_LogItem(position, NOW, CodeBlock("", calls), list(results) if results else None)


def counted(*errors_per_turn: int) -> TurnCounters:
    counters = TurnCounters()
    for errors in errors_per_turn:
        counters.open(turn())
        for _ in range(errors):
            counters.record_error(0)
    return counters


@table_test(
    ("turns", "exceptions", "streak"),
    [((), 0, 0), ((0, 0), 0, 0), ((1,), 1, 1), ((1, 1, 0, 1), 3, 2), ((0, 1, 1, 1), 3, 3), ((1, 0, 0), 1, 1)],
)
def test_turns_exceptions_and_the_longest_streak_are_counted(
    turns: tuple[int, ...], exceptions: int, streak: int
) -> None:
    counters = counted(*turns)
    assert (counters.turns, counters.exceptions, counters.longest_streak) == (len(turns), exceptions, streak)


def test_a_turn_with_several_errors_adds_one_to_the_streak() -> None:
    counters = counted(4, 1)
    assert (counters.exceptions, counters.longest_streak) == (5, 2)


def test_failed_tool_calls_of_a_turn_count_each() -> None:
    counters = TurnCounters()
    counters.open(turn(ToolError("ValueError: a"), "fine", ToolError("ValueError: b")))
    counters.record_error(0)
    assert (counters.exceptions, counters.longest_streak) == (3, 1)


def test_a_tool_log_that_is_filled_later_counts_as_it_stands() -> None:
    counters, item = TurnCounters(), turn()
    counters.open(item)
    item.tool_log = [ToolError("ValueError: a")]
    assert counters.exceptions == 1
    item.tool_log = ["fine"]
    assert counters.exceptions == 0


def test_errors_of_warmup_are_no_exceptions() -> None:
    counters = TurnCounters()
    counters.open(WarmupLogItem(0, NOW, 0))
    counters.record_error(0)
    assert (counters.turns, counters.exceptions, counters.longest_streak) == (0, 0, 0)


def test_an_error_before_any_turn_belongs_to_none() -> None:
    counters = TurnCounters()
    counters.record_error(0)
    counters.open(turn())
    assert counters.exceptions == 0


def test_warmup_entered_between_turns_neither_counts_nor_breaks_a_streak() -> None:
    counters = counted(1)
    counters.open(WarmupLogItem(0, NOW, 0))
    counters.open(turn())
    counters.record_error(0)
    assert counters.longest_streak == 2


def by_position(*positions: int) -> PositionCounters:
    counters = PositionCounters()
    for position in positions:
        counters.open(turn(position=position))
    return counters


@table_test(
    ("positions", "error_at", "exceptions", "streak"),
    [((0, 0, 0), 0, 3, 3), ((0, 1, 1, 2), 1, 2, 2), ((0, 1, 2), 2, 1, 1), ((1, 2), 0, 0, 0)],
)
def test_up_to_1_2_6_turns_that_began_at_one_position_fail_together(
    positions: tuple[int, ...], error_at: int, exceptions: int, streak: int
) -> None:
    counters = by_position(*positions)
    counters.record_error(error_at)
    assert (counters.turns, counters.exceptions) == (len(positions), exceptions)
    assert counters.longest_streak == streak


def test_up_to_1_2_6_errors_at_one_position_are_one_and_later_turns_there_share_it() -> None:
    counters = by_position(4)
    counters.record_error(4)
    counters.record_error(4)
    assert counters.exceptions == 1
    counters.open(turn(position=4))
    assert (counters.exceptions, counters.longest_streak) == (2, 2)


def test_up_to_1_2_6_failed_tool_calls_count_beside_the_error_of_their_position() -> None:
    counters = PositionCounters()
    counters.open(WarmupLogItem(3, NOW, 0))
    counters.open(turn(ToolError("ValueError: a"), "fine", position=3))
    counters.record_error(3)
    assert (counters.turns, counters.exceptions, counters.longest_streak) == (1, 2, 1)
