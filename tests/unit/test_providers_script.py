"""The values of a script and their constructors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from statek_sim.errors import BadInput
from statek_sim.providers.condition import Condition, accepts, contains, equals, matches
from statek_sim.providers.contract import example_requests
from statek_sim.providers.script import (
    Chat,
    Computed,
    HttpError,
    NoAnswer,
    RawBody,
    Reply,
    ScriptedCall,
    UsageKind,
    as_reply,
    code,
    computed,
    fault,
    python,
    raw,
    text,
    timeout,
    tool_call,
    tool_calls,
)
from statek_sim.providers.wire.reply import ReportedUsage
from tests.says import line_with
from tests.tables import table_test


def test_constructors_say_what_is_answered() -> None:
    assert code("x = 1").answer == Chat(code="x = 1")
    assert text("done").answer == Chat(text="done")
    assert fault(429, retry_after=2.0).answer == HttpError(429, 2.0)
    assert raw(b"{}").answer == RawBody(b"{}")
    assert python("x = 1").answer == Chat(calls=(ScriptedCall("python_cli", {"code": "x = 1"}),))


def test_a_tool_call_takes_arguments_named_like_its_own_parameters() -> None:
    reply = tool_call("report", id="s-1", name="n")
    assert reply.answer == Chat(calls=(ScriptedCall("report", {"id": "s-1", "name": "n"}),))


def test_several_tool_calls_may_come_with_text_and_code() -> None:
    first, second = ScriptedCall("a", {}), ScriptedCall("b", {"x": 1}, "my-id")
    assert tool_calls(first, second, text="so", code="y").answer == Chat(
        text="so", code="y", calls=(first, second)
    )


def test_several_tool_calls_are_written_like_one() -> None:
    both = tool_calls(tool_call("a"), tool_call("b", x=1), text="so")
    assert both.answer == Chat(text="so", calls=(ScriptedCall("a", {}), ScriptedCall("b", {"x": 1})))


@table_test("wrong", [text("so"), tool_call("b").mistaken(), tool_call("b").after(2), raw(b"{}"), "b"])
def test_what_is_no_plain_call_is_refused_among_several(wrong: Any) -> None:
    with pytest.raises(BadInput, match=line_with("argument 2", "tool_calls", "tool_call(...)")):
        tool_calls(tool_call("a"), wrong)


def test_arguments_of_a_tool_call_may_be_a_mapping() -> None:
    assert tool_call("t", {"at-most": 1}, x=2) == tool_call("t", **{"at-most": 1, "x": 2})
    with pytest.raises(BadInput, match=line_with("tool call 't'", "got 'nut'", "tool_call('t', name=value)")):
        tool_call("t", "nut")  # type: ignore[arg-type]


def test_a_timeout_takes_the_clients_sixty_seconds_unless_told_otherwise() -> None:
    assert (timeout().answer, timeout().latency) == (NoAnswer(), 60.0)
    assert timeout().after(5).latency == 5


def test_a_raw_mapping_is_dumped_as_compact_json() -> None:
    assert raw({"choices": [], "é": None}).answer == RawBody('{"choices":[],"é":null}'.encode())
    assert raw("<html>").answer == RawBody(b"<html>")


def test_chained_options_build_one_frozen_reply() -> None:
    reply = (
        text("ok")
        .after(2.5)
        .when("approve", tool_result=equals("yes"), turn=3)
        .times(2)
        .only_for("main")
        .reporting(prompt=10, completion=4, cost=0.5)
    )
    assert reply == Reply(
        answer=Chat(text="ok"),
        latency=2.5,
        condition=Condition(last_message=contains("approve"), tool_result=equals("yes"), turn=3),
        repeat=2,
        job="main",
        usage=ReportedUsage(prompt=10, completion=4, cost=0.5),
    )


def test_options_leave_the_original_reply_alone() -> None:
    plain = code("x")
    plain.forever()
    plain.cut_short()
    assert plain == code("x")
    assert code("x").forever().repeat is None


def test_a_script_entry_is_a_reply_code_bytes_or_a_callable() -> None:
    def model(request: object) -> str:
        return "x"

    assert as_reply("x = 1") == code("x = 1")
    assert as_reply(b"{}") == raw(b"{}")
    assert as_reply(model) == computed(model)
    assert as_reply(model).answer == Computed(model)
    with pytest.raises(BadInput, match=line_with("Reply", "string", "bytes", "callable", "got 5")):
        as_reply(5)  # type: ignore[arg-type]  # what a typo gives
    with pytest.raises(BadInput, match=line_with("list", "not a reply", "tool_calls(")):
        as_reply([tool_call("a"), tool_call("b")])  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_latency_is_finite_and_not_negative(seconds: float) -> None:
    with pytest.raises(BadInput, match=line_with("finite latency", "0 seconds", f"got {seconds}")):
        code("x").after(seconds)


def test_a_reply_repeats_at_least_once() -> None:
    with pytest.raises(BadInput, match=line_with("repeat", "1 or more", "None", "got 0")):
        code("x").times(0)


@table_test("status", [200, 304, 399, 600])
def test_a_fault_is_a_failed_status(status: int) -> None:
    with pytest.raises(BadInput, match=line_with("status", "400 to 599", f"got {status}")):
        fault(status)


@pytest.mark.parametrize("reply", [fault(500), timeout(), raw(b"{}")])
def test_message_options_are_refused_where_there_is_no_message(reply: Reply) -> None:
    kind = type(reply.answer).__name__
    with pytest.raises(BadInput, match=line_with("'usage'", "message", kind)):
        reply.with_usage(UsageKind.MEASURED)
    with pytest.raises(BadInput, match=line_with("'truncated'", "message", kind)):
        reply.cut_short()
    with pytest.raises(BadInput, match=line_with("'malformed_arguments'", "message", kind)):
        reply.with_arguments("{")
    with pytest.raises(BadInput, match=line_with("'fence'", "message", kind)):
        replace(reply, fence=True)


def test_a_reported_cost_is_finite() -> None:
    with pytest.raises(BadInput, match=line_with("finite", "cost", "got nan")):
        text("x").reporting(cost=float("nan"))


def test_arguments_that_are_not_json_are_refused() -> None:
    with pytest.raises(BadInput, match=line_with("arguments", "'t'", "JSON", "type set")):
        ScriptedCall("t", {"x": {1}})  # type: ignore[dict-item]  # what a typo gives


def test_on_demands_the_whole_text_where_when_is_content_with_a_part() -> None:
    asked = replace(
        example_requests()[0],
        messages=({"role": "user", "content": "hello world"},),
        headers={"x-tenant": "blue"},
    )
    demanded = {
        "part": text("x").on("hello"),
        "whole": text("x").on("hello world", model="gpt-4o", headers={"X-Tenant": "blue"}),
        "asked for a part": text("x").on(contains("hello"), model=matches("^gpt-")),
        "other model": text("x").on(model="gpt-4"),
        "other header": text("x").on(headers={"x-tenant": "red"}),
        "when": text("x").when("hello"),
    }
    met = [name for name, reply in demanded.items() if reply.condition and accepts(reply.condition, asked)]
    assert met == ["whole", "asked for a part", "when"]
