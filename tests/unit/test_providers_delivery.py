"""How replies become raw answers and failures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from statek_sim.errors import BadInput, InvalidFormat, ProviderHTTPError, ProviderTimeout
from statek_sim.providers.contract import example_requests
from statek_sim.providers.delivery import deliver, manner
from statek_sim.providers.protocol import ChatRequest, ChatStyleName
from statek_sim.providers.script import (
    Reply,
    ScriptedCall,
    UsageKind,
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
from statek_sim.providers.wire.openai import read_reply
from statek_sim.providers.wire.reply import NO_USAGE, ReportedUsage, ToolCallRequest
from tests.says import line_with

REQUEST = example_requests()[0]
PLAIN = manner(None, None)


def said(reply: Reply, style: ChatStyleName | None = None) -> tuple[str, list[tuple[str, object]]]:
    parsed = read_reply(deliver(reply, REQUEST, manner(style, None)).body)
    return parsed.text, [(call.name, call.arguments) for call in parsed.tool_calls]


@pytest.mark.parametrize("style", ["MARKDOWN", "MD_DIALOG"])
def test_code_is_fenced_in_the_markdown_styles(style: ChatStyleName) -> None:
    assert said(code("print(1)\n"), style) == ("```python\nprint(1)\n```", [])


@pytest.mark.parametrize("style", ["CONSOLE", None])
def test_code_is_sent_raw_in_console_style_and_without_a_style(style: ChatStyleName | None) -> None:
    assert said(code("print(1)\n"), style) == ("print(1)\n", [])


def test_code_is_one_python_cli_call_in_direct_style() -> None:
    assert said(code("print(1)"), "DIRECT") == ("", [("python_cli", {"code": "print(1)"})])


def test_fence_says_otherwise_than_the_chat_style() -> None:
    assert said(code("x").fenced(fence=True), "CONSOLE") == ("```python\nx\n```", [])
    assert said(code("x").fenced(fence=False), "MARKDOWN") == ("x", [])
    assert said(code("x").fenced(fence=True), "DIRECT") == ("```python\nx\n```", [])


@pytest.mark.parametrize("style", ["CONSOLE", "MARKDOWN", None])
def test_text_beside_code_keeps_the_code_in_a_fence(style: ChatStyleName | None) -> None:
    reply = tool_calls(text="I will look.", code="x")
    assert said(reply, style) == ("I will look.\n\n```python\nx\n```", [])


def test_text_beside_code_stays_content_in_direct_style() -> None:
    reply = tool_calls(ScriptedCall("t", {}), text="I will look.", code="x")
    assert said(reply, "DIRECT") == ("I will look.", [("t", {}), ("python_cli", {"code": "x"})])


def test_text_is_sent_as_it_is_in_every_style() -> None:
    assert said(text(" a\n```b"), "MARKDOWN") == (" a\n```b", [])


def test_tool_call_ids_count_turn_and_call_unless_given() -> None:
    reply = tool_calls(ScriptedCall("a", {}), ScriptedCall("b", {"x": 1}, "mine"), ScriptedCall("c", {}))
    parsed = read_reply(deliver(reply, replace(REQUEST, turn=7), PLAIN).body)
    assert parsed.tool_calls == (
        ToolCallRequest("call-7-1", "a", {}),
        ToolCallRequest("mine", "b", {"x": 1}),
        ToolCallRequest("call-7-3", "c", {}),
    )


def test_a_role_has_its_own_style_and_an_unnamed_role_has_none() -> None:
    spoken = manner({"agent": "MARKDOWN"}, None)
    assert read_reply(deliver(code("x"), REQUEST, spoken).body).text == "```python\nx\n```"
    assert read_reply(deliver(code("x"), replace(REQUEST, role="other"), spoken).body).text == "x"


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("chat style", "CONSOLE", "DIRECT", "None", "got 'MD'")):
        manner({"agent": "MD"}, None)  # type: ignore[dict-item]  # what a typo gives


def test_the_body_carries_the_time_at_which_it_arrives() -> None:
    reply = deliver(text("x").after(10), replace(REQUEST, at=5.0), PLAIN)
    assert reply.latency == 10
    assert json.loads(reply.body)["created"] == 1767258015


def test_a_fault_is_raised_with_status_text_and_latency() -> None:
    with pytest.raises(ProviderHTTPError, match=r"^Client error '429 Too Many Requests' for url ") as caught:
        deliver(fault(429).after(2), REQUEST, PLAIN)
    assert (caught.value.status, caught.value.latency) == (429, 2)


def test_a_timeout_is_raised_with_an_empty_text_like_httpxs() -> None:
    with pytest.raises(ProviderTimeout) as caught:
        deliver(timeout(), REQUEST, PLAIN)
    assert (str(caught.value), caught.value.latency) == ("", 60.0)


def test_a_raw_body_arrives_unchanged() -> None:
    assert deliver(raw(b"<html>").after(1), REQUEST, PLAIN).body == b"<html>"


def test_truncated_text_loses_its_second_half_and_finishes_by_length() -> None:
    body = deliver(text("abcdef").cut_short(), REQUEST, PLAIN).body
    assert read_reply(body).text == "abc"
    assert json.loads(body)["choices"][0]["finish_reason"] == "length"


def test_a_truncated_tool_call_has_half_its_arguments() -> None:
    with pytest.raises(InvalidFormat, match=r"^Invalid JSON in 'arguments': "):
        read_reply(deliver(tool_call("t", owner="worker-1").cut_short(), REQUEST, PLAIN).body)


def test_malformed_arguments_replace_those_of_the_last_call() -> None:
    reply = tool_calls(ScriptedCall("a", {"x": 1}), ScriptedCall("b", {})).with_arguments("{oops")
    calls = json.loads(deliver(reply, REQUEST, PLAIN).body)["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"x": 1}', "{oops"]


def test_malformed_arguments_reach_the_python_cli_call_of_direct_style() -> None:
    body = deliver(code("x").with_arguments("{"), REQUEST, manner("DIRECT", None)).body
    with pytest.raises(InvalidFormat, match=r"^Invalid JSON in 'arguments': "):
        read_reply(body)


def test_malformed_arguments_without_a_tool_call_are_refused() -> None:
    with pytest.raises(BadInput, match=line_with("'malformed_arguments' requires", "tool call")):
        deliver(text("x").with_arguments("{"), REQUEST, PLAIN)


def test_usage_is_absent_null_or_as_scripted() -> None:
    def usage(reply: Reply) -> ReportedUsage:
        return read_reply(deliver(reply, REQUEST, PLAIN).body).usage

    assert usage(text("x")) == NO_USAGE
    assert usage(text("x").reporting(prompt=9, completion=1, cached=4, cost=0.5)) == ReportedUsage(
        prompt=9, completion=1, cached=4, cost=0.5
    )
    assert usage(text("x").reporting(prompt=None)).prompt is None
    with pytest.raises(AttributeError, match=r"^'NoneType' object has no attribute 'get'$"):
        usage(text("x").with_usage(UsageKind.NULL))


def test_measured_usage_counts_content_and_tool_calls() -> None:
    seen: list[str] = []

    def measure(request: ChatRequest, reply: str) -> tuple[int, int]:
        seen.append(reply)
        return 7, 3

    reply = tool_calls(ScriptedCall("t", {"x": 1}), text="so").with_usage(UsageKind.MEASURED)
    body = deliver(reply, REQUEST, manner(None, measure)).body
    assert seen == ['so\nt\n{"x": 1}']
    assert read_reply(body).usage == ReportedUsage(prompt=7, completion=3)


def test_measured_usage_without_a_measure_is_refused() -> None:
    reply = python("x").with_usage(UsageKind.MEASURED)
    with pytest.raises(BadInput, match=line_with("'measured'", "requires", "`measure`")):
        deliver(reply, REQUEST, PLAIN)


def test_a_callables_string_is_code_with_the_options_around_it() -> None:
    reply = computed(lambda request: f"print({request.turn})").after(2).reporting(prompt=1)
    answer = deliver(reply, REQUEST, manner("MARKDOWN", None))
    assert answer.latency == 2
    assert read_reply(answer.body).text == "```python\nprint(1)\n```"
    assert read_reply(answer.body).usage.prompt == 1


def test_a_callables_reply_counts_as_it_is_and_latencies_add_up() -> None:
    answer = deliver(computed(lambda _: text("x").after(1)).after(2), REQUEST, PLAIN)
    assert (read_reply(answer.body).text, answer.latency) == ("x", 3)


def test_a_callables_bytes_are_a_raw_body() -> None:
    assert deliver(computed(lambda _: b"{}"), REQUEST, PLAIN).body == b"{}"


def test_a_callable_that_answers_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("callable", "Reply", "string", "bytes", "got None")):
        deliver(computed(lambda _: None), REQUEST, PLAIN)  # type: ignore[arg-type,return-value]


def test_a_callable_that_answers_a_callable_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("callable returned another callable")):
        deliver(computed(lambda _: computed(lambda _: "x")), REQUEST, PLAIN)


def test_a_callables_reply_has_no_condition_of_its_own() -> None:
    with pytest.raises(BadInput, match=r"^a reply returned by a callable cannot have "):
        deliver(computed(lambda _: text("x").when(turn=9)), REQUEST, PLAIN)
