"""The scripted LLM gives replies in order, and fails loudly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from statek_sim.errors import BadInput, ProviderHTTPError, ScriptExhausted, UnmatchedRequest, UnusedReplies
from statek_sim.providers.contract import example_requests
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import UsageKind, code, computed, fault, raw, text, timeout, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.openai import read_reply
from statek_sim.values import Message
from tests.says import line_with, says


def request(
    message: str = "hi", *, job: str = "main", role: str = "agent", turn: int = 1, attempt: int = 1
) -> ChatRequest:
    messages = ({"role": "user", "content": message},)
    return replace(
        example_requests()[0], job_id=job, role=role, turn=turn, attempt=attempt, messages=messages
    )


def said(llm: ScriptedLLM, asked: ChatRequest) -> str:
    return read_reply(llm.complete(asked).body).text


def test_replies_without_condition_come_in_script_order() -> None:
    llm = ScriptedLLM(["a", "b", "c"])
    assert [said(llm, request(turn=turn)) for turn in (1, 2, 3)] == ["a", "b", "c"]
    llm.check_finished()


def test_each_role_has_its_own_script_shared_by_its_jobs_in_the_order_they_ask() -> None:
    llm = ScriptedLLM({"worker": ["w1", "w2"], "clerk": ["c1"]})
    asked = [
        request(role="worker", job="j1"),
        request(role="clerk", job="j2"),
        request(role="worker", job="j3"),
    ]
    assert [said(llm, each) for each in asked] == ["w1", "c1", "w2"]


def test_a_jobs_own_script_goes_before_its_roles() -> None:
    llm = ScriptedLLM({"worker": ["role"], "job:special": ["job"]})
    assert said(llm, request(role="worker", job="special")) == "job"
    assert said(llm, request(role="worker", job="other")) == "role"


def test_a_job_with_an_exhausted_script_of_its_own_does_not_fall_back_to_its_role() -> None:
    llm = ScriptedLLM({"worker": ["role"], "job:special": []})
    with pytest.raises(ScriptExhausted, match=line_with("job 'special'", "'job:special'", "0 replies")):
        llm.complete(request(role="worker", job="special"))


def test_a_conditional_reply_waits_until_its_condition_holds() -> None:
    llm = ScriptedLLM([text("late").when("done"), "first", "second"])
    assert said(llm, request("hi")) == "first"
    assert said(llm, request("all done")) == "late"
    assert said(llm, request("all done")) == "second"


def test_a_reply_for_one_job_waits_for_that_job() -> None:
    llm = ScriptedLLM([text("b's").only_for("b"), "anyone's"])
    assert said(llm, request(job="a")) == "anyone's"
    assert said(llm, request(job="b")) == "b's"


def test_a_reply_is_given_as_often_as_it_repeats() -> None:
    llm = ScriptedLLM([text("x").times(2), text("y")])
    assert [said(llm, request()) for _ in range(3)] == ["x", "x", "y"]


def test_a_reply_that_repeats_forever_never_runs_out() -> None:
    llm = ScriptedLLM([text("hm").when("?").forever(), text("end")])
    assert [said(llm, request(m)) for m in ("a?", "b?", "c", "d?")] == ["hm", "hm", "end", "hm"]
    llm.check_finished()


def test_a_retry_takes_the_next_reply() -> None:
    llm = ScriptedLLM([fault(429), "ok"])
    with pytest.raises(ProviderHTTPError, match="429"):
        llm.complete(request(attempt=1))
    assert said(llm, request(attempt=2)) == "ok"


def test_every_request_is_recorded_in_order_even_one_that_fails() -> None:
    llm = ScriptedLLM(["a"])
    llm.complete(request(turn=1))
    with pytest.raises(ScriptExhausted, match=r"^job 'main'"):
        llm.complete(request(turn=2))
    assert [each.turn for each in llm.requests] == [1, 2]


def test_requests_are_not_kept_when_that_is_switched_off() -> None:
    llm = ScriptedLLM(["a"], keep_requests=False)
    llm.complete(request())
    assert llm.requests == []


def test_an_exhausted_script_says_who_asked_what_was_said_and_what_to_do() -> None:
    llm = ScriptedLLM({"agent": ["a", "b"]})
    llm.complete(request())
    llm.complete(request())
    messages: list[Message] = [
        {"role": "system", "content": "not shown"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"x": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "head\n" + "x" * 100},
    ]
    with pytest.raises(ScriptExhausted) as caught:
        llm.complete(replace(request(turn=3), messages=messages))
    problem, *said_before, advice = str(caught.value).splitlines()
    assert says(problem, "job 'main'", "agent 'agent'", "turn 3", "attempt 1", "script 'agent'", "2 replies")
    assert said_before == [
        "  user: go",
        '  assistant: [calls t {"x": 1}]',
        f"  tool: head\\n{'x' * 31} ... {'x' * 37}",
    ]
    assert says(advice, "add a reply", "'agent'", "before turn 3", "exit(...)")


def test_an_unmatched_request_says_what_every_reply_left_waits_for() -> None:
    llm = ScriptedLLM(
        [
            code("x = 1").when("approved"),
            tool_call("t").when(tool_result="ok", turn=2).times(3),
            raw(b"{}").only_for("other"),
        ]
    )
    with pytest.raises(UnmatchedRequest) as caught:
        llm.complete(request("hi"))
    problem, said_before, first, second, third, advice = str(caught.value).splitlines()
    assert says(problem, "job 'main'", "agent 'agent'", "turn 1", "attempt 1", "none of the 3")
    assert said_before == "  user: hi"
    assert says(first, "reply 1", "code 'x = 1'", "last message", "'approved'")
    assert says(second, "reply 2", "tool call 't'", "tool result", "'ok'", "turn is 2", "used 0 of 3")
    assert says(third, "reply 3", "body '{}'", "job 'other'")
    assert says(advice, "condition", "add a reply")


def test_a_job_without_a_script_is_told_which_scripts_there_are() -> None:
    llm = ScriptedLLM({"worker": ["x"], "job:b": ["y"]})
    with pytest.raises(UnmatchedRequest) as caught:
        llm.complete(request(job="a", role="clerk"))
    problem, said_before, advice = str(caught.value).splitlines()
    assert says(problem, "job 'a'", "agent 'clerk'", "turn 1", "attempt 1", "'worker', 'job:b'")
    assert said_before == "  user: hi"
    assert says(advice, "add a script", "'clerk' or 'job:a'")


def test_a_role_with_a_slip_in_it_is_asked_about() -> None:
    llm = ScriptedLLM({"wroker": ["x"]})
    with pytest.raises(UnmatchedRequest, match=r"or is 'wroker' a typo\?$"):
        llm.complete(request(job="a", role="worker"))


def test_unused_replies_are_listed_with_their_conditions() -> None:
    llm = ScriptedLLM(
        {"agent": ["used", text("x").times(2), timeout().when(attempt=3), text("y").forever().when("never")]}
    )
    llm.complete(request())
    llm.complete(request())
    with pytest.raises(UnusedReplies) as caught:
        llm.check_finished()
    problem, second, third, fourth, advice = str(caught.value).splitlines()
    assert says(problem, "3", "replies", "never used")
    assert says(second, "reply 2 of 'agent'", "text 'x'", "used 1 of 2")
    assert says(third, "reply 3 of 'agent'", "timeout", "attempt is 3")
    assert says(fourth, "reply 4 of 'agent'", "text 'y'", "last message", "'never'", "forever", "used 0")
    assert says(advice, "remove", "longer")


def test_a_long_list_of_unused_replies_is_cut() -> None:
    with pytest.raises(UnusedReplies, match=r"(?m)^  \.\.\. and 15 more$"):
        ScriptedLLM(["x"] * 25).check_finished()


def test_a_callable_in_a_script_is_asked_and_named_in_errors() -> None:
    def planner(asked: ChatRequest) -> str:
        return f"print({asked.last_message!r})"

    llm = ScriptedLLM([planner, computed(planner).when("never")])
    assert said(llm, request("hi")) == "print('hi')"
    assert says(str(llm.unused()[0]), "planner'", "last message", "'never'")


def test_code_takes_the_form_of_the_roles_chat_style() -> None:
    llm = ScriptedLLM({"a": ["x"], "b": ["x"]}, styles={"a": "MARKDOWN"})
    assert said(llm, request(role="a")) == "```python\nx\n```"
    assert said(llm, request(role="b")) == "x"


def test_measured_usage_is_refused_at_once_without_a_measure() -> None:
    with pytest.raises(BadInput, match=line_with("reply 1 of 'agent'", "text 'x'", "'measured'")):
        ScriptedLLM({"agent": [text("x").with_usage(UsageKind.MEASURED)]})


def test_measured_usage_is_reported_with_a_measure() -> None:
    llm = ScriptedLLM(
        [text("abc").with_usage(UsageKind.MEASURED)], measure=lambda asked, reply: (5, len(reply))
    )
    usage = read_reply(llm.complete(request()).body).usage
    assert (usage.prompt, usage.completion) == (5, 3)


def test_a_string_is_not_taken_for_a_list_of_one_letter_replies() -> None:
    with pytest.raises(BadInput, match=line_with("script", "list", "'abc'")):
        ScriptedLLM("abc")
    with pytest.raises(BadInput, match=line_with("script 'agent'", "list", "'abc'")):
        ScriptedLLM({"agent": "abc"})


def test_a_request_without_messages_is_described_too() -> None:
    with pytest.raises(ScriptExhausted, match=r"(?m)^  \(no messages yet\)$"):
        ScriptedLLM([]).complete(replace(request(), messages=()))
