"""Where in a run a result began to differ."""

from __future__ import annotations

from statek_sim.suite.diff import difference_at, job_of
from statek_sim.suite.result import Mismatch
from statek_sim.trace import ConsoleLine, Event, HandlerRan, LLMReplied, LLMRequested, ToolCalled
from tests.tables import table_test

TRACE: list[Event] = [
    LLMRequested(0.0, "main", 1, 1, "gpt-4o", 10, 0, ()),
    LLMReplied(0.0, "main", 1, 10, 1, 1, None, None, "code", ()),
    ConsoleLine(0.0, "other", 0, "elsewhere", None),
    ConsoleLine(0.0, "main", 0, "one", None),
    ConsoleLine(0.0, "main", 1, "two", None),
    ToolCalled(0.0, "main", "claim", "", "code"),
    LLMRequested(0.0, "main", 2, 1, "gpt-4o", 10, 0, ()),
    LLMReplied(0.0, "main", 2, 10, 1, 1, None, None, "code", ()),
    HandlerRan(0.0, "main", "cleanup", "None", None, None),
]


@table_test(
    ("mismatch", "position"),
    [
        (Mismatch(("jobs", "main", "console"), ["one"], ["one", "two"]), 4),
        (Mismatch(("jobs", "main", "console"), ["won", "two"], ["one", "two"]), 3),
        (Mismatch(("jobs", "main", "console"), ["one", "two", "three"], ["one", "two"]), None),
        (Mismatch(("jobs", "main", "console", "excludes", 0), "wo", ["two"]), 4),
        (Mismatch(("jobs", "main", "console", "contains", 0), "three", ["one", "two"]), None),
        (Mismatch(("jobs", "main", "console", "lines"), 1, 2), 4),
        (Mismatch(("jobs", "main", "turns"), 1, 2), 7),
        (Mismatch(("jobs", "main", "turns"), 3, 2), None),
        (Mismatch(("jobs", "main", "llm_calls"), 1, 2), 6),
        (Mismatch(("llm_calls",), 0, 2), 0),
        (Mismatch(("handlers",), [], [{"name": "cleanup"}]), 8),
        (Mismatch(("jobs", "main", "tool_calls"), [{"name": "x"}], [{"name": "claim"}]), 5),
        (Mismatch(("jobs", "main", "status"), "DONE", "STARTED"), None),
        (Mismatch(("usage", "tokenizer"), "none", "o200k_base"), None),
    ],
)
def test_the_event_that_made_the_difference_is_found(mismatch: Mismatch, position: int | None) -> None:
    assert difference_at(TRACE, mismatch) == position


def test_a_mismatch_is_about_a_job_or_about_the_run() -> None:
    assert job_of(Mismatch(("jobs", "main", "turns"), 1, 2)) == "main"
    assert job_of(Mismatch(("llm_calls",), 1, 2)) is None
