"""The wire check, beside what others say about the same histories."""

from __future__ import annotations

from statek_sim.agent.context.wire_check import WireRule, wire_faults
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.request import FormatName, WireRequest
from statek_sim.values import Message
from tests.context.histories import HEAD, turn
from tests.tables import table_test


def rules(
    messages: list[Message], wire: FormatName = "openai", *, alternating: bool = False
) -> list[WireRule]:
    return [fault.rule for fault in wire_faults(messages, wire, alternating=alternating)]


@table_test("wire", ["openai", "responses", "anthropic", "gemini"])
def test_a_history_of_the_loop_is_taken_by_every_provider(wire: FormatName) -> None:
    assert not rules([*HEAD, *turn(1, "a", "b"), {"role": "user", "content": "Go on."}, *turn(2, "")], wire)


def test_a_result_without_its_call() -> None:
    assert rules([*HEAD, *turn(1, "a")[1:]]) == [WireRule.ORPHAN]


def test_a_call_without_its_result() -> None:
    assert rules([*HEAD, *turn(1, "a", "b")[:2]]) == [WireRule.UNANSWERED]


def test_a_result_that_comes_late_is_no_answer() -> None:
    call, answer = turn(1, "a")
    found = rules([*HEAD, call, {"role": "user", "content": "Well?"}, answer])
    assert found == [WireRule.UNANSWERED, WireRule.ORPHAN]


def test_a_call_that_is_answered_twice() -> None:
    call, answer = turn(1, "a")
    assert rules([*HEAD, call, answer, answer]) == [WireRule.TWICE]


def test_empty_contents() -> None:
    assert rules([{"role": "system", "content": "x"}, {"role": "user", "content": " "}]) == [WireRule.EMPTY]
    assert rules([*HEAD, {"role": "assistant", "content": None}]) == [WireRule.EMPTY]
    call, answer = turn(1, "a")
    assert rules([*HEAD, call, {**answer, "content": None}]) == [WireRule.EMPTY]


def test_an_unknown_role() -> None:
    assert rules([*HEAD, {"role": "bot", "content": "x"}]) == [WireRule.ROLE]


def test_nothing_but_the_systems_messages() -> None:
    assert rules(HEAD[:1]) == [WireRule.NOTHING]


def test_arguments_that_are_no_object_are_told_where_the_format_has_no_place_for_them() -> None:
    call, answer = turn(1, "a")
    broken: Message = {
        **call,
        "tool_calls": [{"id": "call_1_0", "type": "function", "function": {"name": "f", "arguments": "{"}}],
    }
    assert rules([*HEAD, broken, answer]) == []
    assert rules([*HEAD, broken, answer], "anthropic") == [WireRule.ARGUMENTS]


def test_a_system_message_in_the_middle_never_reaches_anthropic_and_gemini() -> None:
    history: list[Message] = [*HEAD, {"role": "system", "content": "A summary."}]
    for wire in ("anthropic", "gemini"):
        assert rules(history, wire) == [WireRule.LATE_SYSTEM]
        body = FORMATS[wire].request_body(WireRequest(model="m", messages=tuple(history)))
        assert "A summary." not in str(body)
    assert rules(history) == []


def test_gemini_wants_calls_behind_a_user_or_a_result_and_a_question_at_the_end() -> None:
    said: Message = {"role": "assistant", "content": "Let me see."}
    assert rules([*HEAD, said, *turn(1, "a")], "gemini") == [WireRule.CALL_AFTER_MODEL]
    assert rules([*HEAD, said], "gemini") == [WireRule.ENDS_WITH_MODEL]
    assert rules([HEAD[0], said, HEAD[1]], "gemini") == [WireRule.NOT_USER_FIRST]


def test_templates_that_want_turns_to_alternate() -> None:
    twice: list[Message] = [*HEAD, {"role": "user", "content": "And quickly."}]
    assert rules(twice) == []
    assert rules(twice, alternating=True) == [WireRule.NOT_ALTERNATING]
    assert rules([*HEAD, *turn(1, "a"), {"role": "assistant", "content": "x"}], alternating=True) == []


MESSAGES: list[Message] = [
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": "a"},
    turn(1, "")[0],
    turn(1, "x", "y")[0],
    {"role": "tool", "content": "x", "tool_call_id": "call_1_0"},
    {"role": "tool", "content": "y", "tool_call_id": "call_1_1"},
]
PAIRS = {WireRule.ORPHAN, WireRule.UNANSWERED, WireRule.TWICE}
