"""Conditions on requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from statek_sim.errors import BadInput
from statek_sim.providers.condition import Condition, TextMatch, accepts, contains, equals, matches
from statek_sim.providers.contract import example_requests
from statek_sim.providers.protocol import ChatRequest
from statek_sim.values import Message
from tests.says import line_with
from tests.tables import table_test


def request_with(*messages: Message, turn: int = 1, attempt: int = 1, at: float = 0.0) -> ChatRequest:
    return replace(example_requests()[0], messages=messages, turn=turn, attempt=attempt, at=at)


@table_test(
    ("match", "text", "accepted"),
    [
        (contains("b"), "abc", True),
        (contains("x"), "abc", False),
        (equals("abc"), "abc", True),
        (equals("ab"), "abc", False),
        (matches(r"b\w$"), "abc", True),
        (matches(r"^b"), "abc", False),
        (TextMatch(contains="a", matches="c$"), "abc", True),
        (TextMatch(contains="a", matches="d$"), "abc", False),
    ],
)
def test_a_last_message_is_matched_by_every_given_part(match: TextMatch, text: str, accepted: bool) -> None:
    request = request_with({"role": "user", "content": text})
    assert accepts(Condition(last_message=match), request) is accepted


def test_a_tool_result_is_the_last_message_of_role_tool_even_when_others_follow() -> None:
    request = request_with(
        {"role": "tool", "content": "old"},
        {"role": "tool", "content": "invoice-1"},
        {"role": "user", "content": "go on"},
    )
    assert accepts(Condition(tool_result=equals("invoice-1")), request)
    assert not accepts(Condition(tool_result=contains("old")), request)


def test_a_request_without_tool_results_meets_no_demand_on_one() -> None:
    assert not accepts(Condition(tool_result=matches("")), request_with({"role": "user", "content": "x"}))


def test_turn_and_attempt_are_exact_and_time_is_a_lower_bound() -> None:
    request = request_with(turn=3, attempt=2, at=5.0)
    assert accepts(Condition(turn=3, attempt=2, at=5.0), request)
    assert not accepts(Condition(turn=2), request)
    assert not accepts(Condition(attempt=1), request)
    assert not accepts(Condition(at=5.1), request)


def test_a_message_without_text_is_the_empty_text() -> None:
    request = request_with({"role": "assistant", "content": None})
    assert accepts(Condition(last_message=equals("")), request)


def test_a_condition_reads_as_a_phrase() -> None:
    condition = Condition(last_message=TextMatch(contains="a", matches="b"), turn=2, at=1.5)
    assert (
        str(condition)
        == "last message contains 'a' and matches 'b' and turn is 2 and virtual second is at least 1.5"
    )


def test_an_empty_text_match_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("'contains', 'equals' or 'matches'")):
        TextMatch()


def test_an_empty_condition_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("condition", "'last_message'", "'model' or 'headers'")):
        Condition()


def test_a_broken_regular_expression_is_refused_with_its_reason() -> None:
    with pytest.raises(BadInput, match=r"^'matches' is not a valid regular expression: '\(': missing \), "):
        matches("(")
