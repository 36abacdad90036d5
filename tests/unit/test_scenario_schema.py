"""The typed values of a scenario: what is said, and what replies and events are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from statek_sim.scenario.events import Event
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.part import JobReference, WorldReference, as_reference
from statek_sim.scenario.reply import Reply, TextMatch, UsageReport, When
from statek_sim.scenario.schema import Limits, QueueItem, Scenario
from statek_sim.values import JSON
from tests.says import line_with
from tests.tables import table_test

EVERYTHING = Path(__file__).parent / "samples" / "good" / "everything.yaml"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_or_fail([EVERYTHING])[0]


def test_a_null_limit_is_said_and_unlimited() -> None:
    limits = Limits.model_validate({"max_turns": None})
    assert limits.said("max_turns")
    assert limits.max_turns is None
    assert not limits.said("max_exceptions")


@table_test(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("0.5s", 0.5),
        ("5m", 300.0),
        ("2h30m", 9_000.0),
        ("1d", 86_400.0),
        ("1d2h3m4s", 93_784.0),
    ],
)
def test_a_time_may_be_a_duration(text: str, seconds: float) -> None:
    assert Reply.model_validate({"text": "", "latency": text}).latency == seconds


@table_test("wrong", ["", "90", "2x", "30m2h", "-1s", "1.5h", "2h 30m"])
def test_another_text_is_no_time(wrong: str) -> None:
    with pytest.raises(ValidationError, match=line_with("seconds", "duration", "'2h30m'", f"got {wrong!r}")):
        Reply.model_validate({"text": "", "latency": wrong})


@table_test(
    ("text", "seconds"),
    [
        ("today 09:00", 0.0),
        ("today 10:30", 5_400.0),
        ("tomorrow 09:00", 86_400.0),
        ("2026-01-05 08:59", 345_540.0),
        ("1d", 86_400.0),
    ],
)
def test_a_condition_may_name_a_moment(text: str, seconds: float) -> None:
    assert When.model_validate({"at": text}).at == seconds


@table_test(
    ("wrong", "facts"),
    [
        ("today 08:59", ["before", "start", "2026-01-01 09:00 UTC"]),
        ("2026-02-30 09:00", ["day"]),
        ("today 25:00", ["hour", "0..23"]),
        ("yesterday 09:00", ["seconds", "duration"]),
    ],
)
def test_another_moment_is_refused(wrong: str, facts: list[str]) -> None:
    with pytest.raises(ValidationError, match=line_with(repr(wrong), *facts)):
        When.model_validate({"at": wrong})


def test_a_length_of_time_is_no_moment() -> None:
    with pytest.raises(ValidationError, match=line_with("seconds", "duration")):
        Reply.model_validate({"text": "", "latency": "tomorrow 09:00"})


@table_test("key", [{"thinking": "Hm."}, {"refuses": True}, {"citations": [{"url": "x"}]}])
def test_only_a_message_thinks_refuses_or_cites(key: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=f"{next(iter(key))} requires text, code or tools"):
        Reply.model_validate({"http": 500, **key})


@table_test("limit", [-1, 2.0, "2", True, 2**63, float("nan"), float("inf")])
def test_a_limit_is_a_whole_number_from_0(limit: object) -> None:
    with pytest.raises(ValidationError, match=r"max_turns"):
        Limits.model_validate({"max_turns": limit})


@table_test("extension", [-0.5, float("nan"), float("inf"), None, "1"])
def test_an_extension_is_a_finite_number_from_0(extension: object) -> None:
    with pytest.raises(ValidationError, match=r"limit_extension_per_completion"):
        Limits.model_validate({"limit_extension_per_completion": extension})


def test_every_kind_of_reply_is_recognised(scenario: Scenario) -> None:
    assert [reply.kind for reply in scenario.script["worker"]] == [
        "code",
        "text",
        "tools",
        "python",
        "http",
        "timeout",
        "body",
        "body",
        "call",
    ]


def test_a_reply_tells_absent_null_measured_and_given_usage_apart(scenario: Scenario) -> None:
    given, measured, null, absent, *_ = scenario.script["worker"]
    assert given.usage == UsageReport(prompt=12, completion=3, cached=0, cost=0.1)
    assert measured.usage == "measured"
    assert (null.usage, null.said("usage")) == (None, True)
    assert (absent.usage, absent.said("usage")) == (None, False)


@table_test(
    ("reply", "message"),
    [
        ({}, "one of code, text, tools"),
        ({"code": "a", "text": "b", "tools": [{"name": "c"}]}, "exclude each other"),
        ({"timeout": False}, "Input should be True"),
        ({"http": 200}, "greater than or equal to 400"),
        ({"text": "a", "retry_after": 1}, "retry_after requires http"),
        ({"text": "a", "malformed_arguments": "{"}, "malformed_arguments requires tools or python"),
        ({"text": "a", "repeat": 0}, "greater than 0"),
        ({"text": "a", "when": {}}, "expected at least one of last_message"),
        ({"text": "a", "when": {"last_message": {"matches": "("}}}, "not a valid regular expression"),
        ({"tools": []}, "at least 1 item"),
        ({"call": "function"}, "should match pattern"),
    ],
)
def test_a_reply_that_contradicts_itself_is_refused(reply: JSON, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Reply.model_validate(reply)


def test_events_say_what_happens_to_whom(scenario: Scenario) -> None:
    assert [(event.action, event.target) for event in scenario.events] == [
        ("resolve", "approval"),
        ("fail", "approval"),
        ("push", "main"),
        ("notify", "main"),
        ("complete", "part-1"),
        ("crash", "worker"),
        ("crash", "worker"),
        ("restart", "worker"),
        ("start", "late"),
    ]


@table_test(
    ("event", "message"),
    [
        ({"crash": "worker"}, "one of at, after"),
        ({"at": 1, "after": {"tool": "a"}, "crash": "worker"}, "one of at, after"),
        ({"at": 1}, "got none"),
        (
            {"at": 1, "resolve": "a", "message": "b"},
            line_with("message", "push or notify or answer or refuse", "not with resolve", "value"),
        ),
        ({"at": 1, "fail": "a"}, "fail requires error"),
        ({"at": 1, "complete": "a", "result": 1, "error": "b"}, "result or error, not both"),
        ({"at": -1, "crash": "worker"}, "greater than or equal to 0"),
        ({"at": 1, "crash": "main"}, "Input should be 'worker'"),
    ],
)
def test_an_event_that_contradicts_itself_is_refused(event: JSON, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Event.model_validate(event)


def test_a_text_is_a_ready_item_of_that_id() -> None:
    assert QueueItem.model_validate("invoice-1") == QueueItem(id="invoice-1", status="READY", owner=None)


def test_a_condition_on_a_text_needs_something_to_compare() -> None:
    with pytest.raises(ValidationError, match="contains, equals, matches"):
        TextMatch.model_validate({})


def test_scenarios_cannot_be_changed(scenario: Scenario) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        scenario.seed = 1


@table_test(
    ("value", "reference"),
    [
        ({"$world": "owner"}, WorldReference("owner")),
        ({"$world": "item:invoice-1"}, WorldReference("item", "invoice-1")),
        ({"$job": "main"}, JobReference("main")),
        ({"a": 1}, None),
        ("$world", None),
    ],
)
def test_references_in_locals_are_recognised(value: JSON, reference: object) -> None:
    assert as_reference(value) == reference


@table_test("value", [{"$world": "item"}, {"$world": 1}, {"$jobs": "a"}, {"$job": "a", "b": 1}])
def test_malformed_references_are_refused(value: JSON) -> None:
    with pytest.raises(ValueError, match=r"expected|a reference is"):
        as_reference(value)
