"""Looking for events in a trace."""

from __future__ import annotations

from statek_sim.scenario.expect import EventsExpect
from statek_sim.suite.expectations import event_mismatches
from statek_sim.suite.result import ABSENT, Mismatch
from statek_sim.trace import ConsoleLine, Event, JobStopped, LLMRequested
from statek_sim.values import JSON
from tests.tables import table_test

TRACE: list[Event] = [
    ConsoleLine(0.0, "main", 0, "one", None),
    LLMRequested(1.0, "main", 1, 1, "gpt-4o", 10, 0, ({"role": "user", "content": "hi"},)),
    ConsoleLine(2.0, "main", 1, "two", None),
    JobStopped(2.0, "main", "exit", None),
]


def mismatches(**said: JSON) -> list[Mismatch]:
    return list(event_mismatches(("events",), EventsExpect.model_validate(said), TRACE))


def test_events_match_in_order_by_the_fields_given() -> None:
    one: dict[str, JSON] = {"event": "ConsoleLine", "text": "one"}
    assert mismatches(contains=[one, {"at": 2}, {"event": "JobStopped", "detail": None}]) == []


def test_nested_messages_are_compared_as_lists() -> None:
    assert mismatches(contains=[{"new": [{"role": "user", "content": "hi"}]}]) == []


def test_the_first_event_that_does_not_come_is_told_with_what_came_instead() -> None:
    two: dict[str, JSON] = {"event": "ConsoleLine", "text": "two"}
    one: dict[str, JSON] = {"event": "ConsoleLine", "text": "one"}
    (mismatch,) = mismatches(contains=[two, one, {"event": "Waiting"}])
    assert mismatch == Mismatch(("events", "contains", 1), one, ABSENT)
    (mismatch,) = mismatches(contains=[{"event": "ConsoleLine", "text": "three"}])
    assert isinstance(mismatch.actual, list)
    assert [entry["text"] for entry in mismatch.actual] == ["one", "two"]


def test_an_event_is_matched_once() -> None:
    stop: dict[str, JSON] = {"event": "JobStopped"}
    assert [mismatch.keypath for mismatch in mismatches(contains=[stop, stop])] == [("events", "contains", 1)]


def test_every_excluded_event_that_is_there_is_told() -> None:
    found = mismatches(
        excludes=[{"event": "JobStopped", "reason": "exit"}, {"event": "Waiting"}, {"job": "main"}]
    )
    assert [mismatch.keypath for mismatch in found] == [("events", "excludes", 0), ("events", "excludes", 2)]


def test_a_flag_is_no_number() -> None:
    assert len(mismatches(contains=[{"event": "ConsoleLine", "index": False}])) == 1


@table_test(
    ("pattern", "flaw"),
    [
        ({"event": "ConsoleLin"}, "unknown event 'ConsoleLin'. Did you mean 'ConsoleLine'?"),
        ({"event": "ConsoleLine", "txt": "a"}, "event ConsoleLine has no field 'txt'. Did you mean 'text'?"),
        ({"resaon": "exit"}, "no event has a field 'resaon'. Did you mean 'reason'?"),
        ({"type": "retry"}, "an event's kind is its field 'event', not 'type'"),
        ({"event": {"a": 1}}, "unknown event {'a': 1}"),
    ],
)
@table_test("key", ["contains", "excludes"])
def test_a_pattern_that_no_event_can_match_is_a_mismatch(key: str, pattern: JSON, flaw: str) -> None:
    assert mismatches(**{key: [pattern]}) == [Mismatch(("events", key, 0), pattern, flaw)]
