"""Waits, tool calls and claims as spans: where they begin, where they end, and which stay open."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim import trace as events
from statek_sim.reporting.page.details import Span, held_item, spans
from statek_sim.scenario.schema import QueueItem
from statek_sim.trace import Event


def drawn(found: Sequence[Span]) -> list[tuple[str, str, int, int | None]]:
    return [(span.kind, span.label, span.from_seq, span.to_seq) for span in found]


def called(name: str, at: float = 0.0, call_id: str | None = None) -> Event:
    return events.ToolCalled(at, "main", name, "", "call", call_id)


def returned(name: str, at: float = 0.0, call_id: str | None = None) -> Event:
    return events.ToolReturned(at, "main", name, "done", None, call_id)


def world(subject: str, change: str, job: str = "main", at: float = 0.0) -> Event:
    return events.WorldChanged(at, job, subject, change)


def test_a_wait_lasts_until_its_future_is_ready() -> None:
    trace: list[Event] = [
        events.Waiting(1.0, "main", "3"),
        events.Waiting(1.0, "other", "0"),
        events.Released(4.5, "main"),
    ]
    first, second = spans(trace)
    assert (first.start, first.end, first.to_seq) == (1.0, 4.5, 2)
    assert (second.job, second.end, second.to_seq) == ("other", None, None)


def test_a_wait_that_begins_again_ends_the_one_before() -> None:
    trace: list[Event] = [events.Waiting(0.0, "main", "1"), events.Waiting(2.0, "main", "1")]
    assert drawn(spans(trace)) == [
        ("wait", "a future, in statement 2", 0, 1),
        ("wait", "a future, in statement 2", 1, None),
    ]


def test_a_tool_that_calls_tools_returns_after_them() -> None:
    trace = [called("outer"), called("inner"), returned("inner"), called("inner"), returned("inner")]
    assert drawn(spans([*trace, returned("outer")])) == [
        ("tool", "outer", 0, 5),
        ("tool", "inner", 1, 2),
        ("tool", "inner", 3, 4),
    ]


def test_a_call_with_an_id_ends_by_it() -> None:
    trace = [called("same", 0.0, "c1"), called("same", 0.0, "c2"), called("same", 0.0)]
    trace += [returned("same", 2.0, "c3"), returned("same", 1.0, "c1"), returned("same", 9.0, "c2")]
    assert [span.end for span in spans(trace)] == [1.0, 9.0, None]


def test_of_calls_of_the_same_tool_the_youngest_returns_first() -> None:
    trace = [called("same"), called("same"), returned("same"), returned("other")]
    assert drawn(spans(trace)) == [("tool", "same", 0, None), ("tool", "same", 1, 2)]


def test_a_job_that_stops_ends_its_waits_and_calls_but_not_its_claims() -> None:
    trace = [world("item-1", "CLAIMED by worker-1"), called("slow"), events.Waiting(0.0, "main", "1")]
    stopped = events.JobStopped(9.0, "main", "max_turns", None)
    assert drawn(spans([*trace, stopped])) == [
        ("claim", "item-1 by worker-1", 0, None),
        ("tool", "slow", 1, 3),
        ("wait", "a future, in statement 2", 2, 3),
    ]


def test_a_claim_lasts_until_the_item_changes() -> None:
    trace = [
        world("item-1", "CLAIMED by worker-1"),
        world("item-2", "CLAIMED by worker-1", at=1.0),
        world("item-1", "CLAIMED by worker-2", job="other", at=2.0),
        world("item-2", "DONE by worker-1", at=3.0),
        world("item-1", "READY", job="", at=4.0),
    ]
    found = spans(trace)
    assert [(span.job, span.label, span.start, span.end) for span in found] == [
        ("main", "item-1 by worker-1", 0.0, 2.0),
        ("main", "item-2 by worker-1", 1.0, 3.0),
        ("other", "item-1 by worker-2", 2.0, 4.0),
    ]


def test_what_happens_to_a_future_or_a_worker_of_an_items_name_ends_no_claim() -> None:
    trace = [world("item-1", "CLAIMED by w"), world("item-1", "resolved"), world("item-1", "broken: DONE")]
    assert drawn(spans(trace)) == [("claim", "item-1 by w", 0, None)]
    assert [held_item(text) for text in ("CLAIMED by w", "READY", "ERROR by w", "resolved", "")] == [
        True,
        False,
        False,
        None,
        None,
    ]


def test_a_claim_of_before_the_run_belongs_to_no_job() -> None:
    items = [QueueItem(id="old", status="CLAIMED", owner="worker-7"), QueueItem(id="new")]
    (span,) = spans([world("old", "ERROR by worker-7", at=2.0)], items)
    assert (span.job, span.label, span.from_seq, span.start, span.end) == ("", "old by worker-7", 0, 0.0, 2.0)


def test_a_tool_call_without_a_name_is_a_span_too() -> None:
    # A provider may leave it out, and the trace holds what came.
    trace = [called(None), returned(None)]  # type: ignore[arg-type]
    assert drawn(spans(trace)) == [("tool", "None", 0, 1)]
