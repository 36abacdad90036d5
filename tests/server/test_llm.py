"""The fake LLM as a function: what it answers to a request, in every format, and what it says when it cannot."""

from __future__ import annotations

import json

import pytest

from statek_sim.errors import BadInput, UnmatchedRequest, UnusedReplies
from statek_sim.providers.condition import contains, equals
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, UsageKind, computed, fault, raw, text, timeout, tool_call
from statek_sim.providers.wire import anthropic as anthropic_wire
from statek_sim.providers.wire import gemini as gemini_wire
from statek_sim.providers.wire import openai as openai_wire
from statek_sim.server.exchange import Incoming, Silence, Streamed, Whole
from statek_sim.server.fault import Fault, FaultRule, Reset, SlowFirstByte, Truncated
from statek_sim.server.llm import FakeLLM
from statek_sim.server.rendering import Pacing
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON
from tests.says import line_with, says
from tests.server.asking import (
    ANTHROPIC,
    ANTHROPIC_TOOLS,
    GEMINI,
    GEMINI_STREAM,
    GEMINI_TOOLS,
    OPENAI,
    OPENAI_TOOLS,
    anthropic,
    ask,
    error,
    gemini,
    openai,
    streamed,
    whole,
)
from tests.tables import table_test


def test_one_script_speaks_all_three_formats() -> None:
    llm = FakeLLM([text("one"), text("two"), text("three")])
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "one"
    assert whole(ask(llm, anthropic(), ANTHROPIC))["content"] == [{"type": "text", "text": "two"}]
    assert whole(ask(llm, gemini(), GEMINI))["candidates"][0]["content"]["parts"] == [{"text": "three"}]
    llm.check_finished()


@pytest.mark.parametrize(
    ("body", "target", "wire"),
    [
        (
            openai(stream=True, stream_options={"include_usage": True}, tools=OPENAI_TOOLS),
            OPENAI,
            openai_wire,
        ),
        (anthropic(stream=True, tools=ANTHROPIC_TOOLS), ANTHROPIC, anthropic_wire),
        (gemini(tools=GEMINI_TOOLS), GEMINI_STREAM, gemini_wire),
    ],
)
def test_a_stream_adds_up_to_what_the_answer_would_be_in_one_piece(body, target, wire) -> None:  # type: ignore[no-untyped-def]
    said = tool_call("look", where="here").answer
    reply = Reply(answer=said)
    at_once, piecemeal = FakeLLM([reply, text("Hello, world!")]), FakeLLM([reply, text("Hello, world!")])
    plain = {key: value for key, value in body.items() if not key.startswith("stream")}
    whole_target = GEMINI if target == GEMINI_STREAM else target
    for _ in range(2):
        stream = streamed(ask(piecemeal, body, target))
        assert json.loads(wire.join_stream(stream)) == whole(ask(at_once, plain, whole_target))


def test_a_stream_comes_token_by_token() -> None:
    llm = FakeLLM([text("Hello there, friend")])
    stream = streamed(ask(llm, openai(stream=True))).decode()
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    pieces = [event["choices"][0]["delta"].get("content") for event in events]
    assert pieces == ["", "Hello", " there", ",", " friend", None]


def test_usage_is_what_the_tokenizer_counts_unless_the_script_says_it() -> None:
    llm = FakeLLM([text("Hello there"), text("x").reporting(prompt=7, completion=3, cached=2)])
    tokenizer = tokenizer_for_model("gpt-4o").tokenizer
    first = whole(ask(llm, openai("How are you?")))["usage"]
    assert first["prompt_tokens"] == prompt_tokens(
        [{"role": "user", "content": "How are you?"}], (), tokenizer
    )
    assert first["completion_tokens"] == completion_tokens("Hello there", None, tokenizer)
    assert whole(ask(llm, openai()))["usage"]["total_tokens"] == 10


def test_usage_can_be_left_as_the_script_has_it() -> None:
    llm = FakeLLM([text("x"), text("y").with_usage(UsageKind.NULL)], count_usage=False)
    assert "usage" not in whole(ask(llm, openai()))
    assert whole(ask(llm, openai()))["usage"] is None


def test_a_repeated_request_gets_the_same_body_under_an_id_of_its_own() -> None:
    llm = FakeLLM([text("same").forever()])
    first, second = (whole(ask(llm, openai())) for _ in range(2))
    assert (first.pop("id"), second.pop("id")) == ("chatcmpl-1", "chatcmpl-2")
    assert first == second


def test_an_answer_that_holds_the_marker_of_prepared_bodies_is_left_alone() -> None:
    llm = FakeLLM([text("@statek-reply-id@").forever()])
    for _ in range(2):
        assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "@statek-reply-id@"


def test_a_prepared_answer_still_counts_the_prompt_of_each_request() -> None:
    llm = FakeLLM([text("same").forever()])
    counts = [
        whole(ask(llm, openai(message)))["usage"]["prompt_tokens"]
        for message in ("hi", "hi there, you", "hi")
    ]
    assert counts == [8, 11, 8]


def test_matching_is_exact_and_by_model_header_message_and_tool_result() -> None:
    llm = FakeLLM(
        [
            text("by model").on(model="o3"),
            text("by header").on(headers={"X-Tenant": "blue"}),
            text("by result").on(tool_result="42"),
            text("by message").on("hi"),
            text("by part").on(contains("ell")),
        ]
    )

    def said(body: object, **headers: str) -> str:
        content: str = whole(ask(llm, body, **headers))["choices"][0]["message"]["content"]
        return content

    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turn = {"role": "assistant", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call-1", "content": "42"}
    assert said(openai("hello")) == "by part"
    assert said(openai("hi")) == "by message"
    assert said(openai("hi", model="o3")) == "by model"
    assert said(openai("hi"), x_tenant="blue") == "by header"
    assert said({"model": "gpt-4o", "messages": [turn, result]}) == "by result"
    llm.check_finished()


def test_scripts_go_by_agent_header_then_model_and_jobs_by_their_header() -> None:
    llm = FakeLLM({"worker": [text("w")], "gpt-4o": [text("m")], "job:j1": [text("j")]})
    assert whole(ask(llm, openai(), x_statek_job="j1"))["choices"][0]["message"]["content"] == "j"
    assert whole(ask(llm, openai(), x_statek_agent="worker"))["choices"][0]["message"]["content"] == "w"
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "m"
    status, message = error(ask(llm, openai(model="o3")))
    assert status == 422
    asked = ("request 4", "POST /v1/chat/completions", "model 'o3'", "turn 1", "for 'o3'")
    assert says(message, *asked, "'worker', 'gpt-4o', 'job:j1'", "x-statek-agent", "one list")


def test_turn_and_attempt_are_read_from_the_request() -> None:
    llm = FakeLLM([text("retried").when(attempt=2), text("second").when(turn=2), text("first")])
    spoken = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "first"
    assert whole(ask(llm, openai() | {"messages": spoken}))["choices"][0]["message"]["content"] == "second"
    assert (
        whole(ask(llm, openai(), x_stainless_retry_count="1"))["choices"][0]["message"]["content"]
        == "retried"
    )


def test_an_unmatched_request_is_told_the_nearest_reply_and_what_does_not_fit() -> None:
    llm = FakeLLM([text("far").on("something else entirely"), text("near").on("hello world", model="o3")])
    status, message = error(ask(llm, openai("hello wrld", model="o3")))
    assert status == 422
    problem, said_before, nearest, difference, advice = message.splitlines()
    assert says(problem, "request 1", "POST /v1/chat/completions", "model 'o3'", "turn 1", "2", "replies")
    assert said_before == "  user: hello wrld"
    assert says(nearest, "reply 2", "text 'near'", "last message", "'hello world'", "model", "'o3'")
    assert says(difference, "last message", "expected equals 'hello world'", "got 'hello wrld'")
    assert says(advice, "condition", "add a reply")
    with pytest.raises(UnmatchedRequest, match=r"^request 1 \(POST .*"):
        llm.check_finished()


def test_an_exhausted_script_says_so() -> None:
    llm = FakeLLM([text("only")])
    ask(llm, openai())
    status, message = error(ask(llm, openai("more")))
    problem, said_before, advice = message.splitlines()
    assert (status, said_before) == (422, "  user: more")
    assert says(
        problem, "request 2", "POST /v1/chat/completions", "model 'gpt-4o'", "turn 1", "1 reply", "used"
    )
    assert says(advice, "add a reply", ".forever()")


def test_replies_nobody_asked_for_fail_the_check() -> None:
    llm = FakeLLM([text("one"), text("two")])
    ask(llm, openai())
    with pytest.raises(UnusedReplies, match=r"^1 .*\n  reply 2: text 'two'"):
        llm.check_finished()


def test_errors_are_worded_as_each_provider_words_them() -> None:
    llm = FakeLLM([fault(429, retry_after=2), fault(529), fault(503)])
    limited = ask(llm, openai())
    assert isinstance(limited, Whole)
    assert (limited.status, limited.headers) == (429, (("retry-after", "2"),))
    assert json.loads(limited.body)["error"]["code"] == "rate_limit_exceeded"
    overloaded = ask(llm, anthropic(), ANTHROPIC)
    assert isinstance(overloaded, Whole)
    assert json.loads(overloaded.body)["error"]["type"] == "overloaded_error"
    unavailable = ask(llm, gemini(), GEMINI)
    assert isinstance(unavailable, Whole)
    assert json.loads(unavailable.body)["error"]["status"] == "UNAVAILABLE"


def test_callables_raw_bodies_and_silence_are_served_too() -> None:
    def echo(request: ChatRequest) -> Reply:
        return text(f"{request.model}: {request.last_message}")

    llm = FakeLLM([computed(echo), raw(b"not json"), timeout()])
    assert whole(ask(llm, openai("ping")))["choices"][0]["message"]["content"] == "gpt-4o: ping"
    answer = ask(llm, openai())
    assert isinstance(answer, Whole)
    assert answer.body == b"not json"
    assert isinstance(ask(llm, openai()), Silence)
    assert llm.journal.entries()[-1].status == 0


def test_a_callable_that_breaks_is_an_error_of_the_test_not_of_the_client() -> None:
    def broken(request: ChatRequest) -> Reply:
        raise KeyError(request.model)

    llm = FakeLLM([computed(broken)])
    assert error(ask(llm, openai())) == (
        500,
        "request 1 (POST /v1/chat/completions): KeyError: 'gpt-4o'",
    )
    with pytest.raises(UnmatchedRequest, match=r": KeyError: 'gpt-4o'$"):
        llm.check_finished()


@table_test(
    ("body", "message"),
    [
        (
            b"{",
            "cannot parse the request: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (
            b"\xff",
            "cannot parse the request: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (b"[]", "cannot parse the request: the body: expected an object, got []"),
        (b'{"model": 1}', None),
        (b"[" * 100_000, None),
    ],
)
def test_a_body_that_is_no_request_is_a_bad_request(body: bytes, message: str | None) -> None:
    llm = FakeLLM([text("x")])
    status, said = error(llm.answer(Incoming("POST", OPENAI, {}, body)))
    assert status == 400
    assert said.startswith("cannot parse the request: ")
    assert message is None or said == message
    with pytest.raises(
        UnmatchedRequest, match=r"^request 1 \(POST /v1/chat/completions\): cannot parse the request: "
    ):
        llm.check_finished()


def test_virtual_time_is_what_the_answers_took_and_takes_no_real_time() -> None:
    llm = FakeLLM([text("a").after(100.0), text("b"), text("c").when(at=100.0)])
    first = ask(llm, openai())
    assert isinstance(first, Whole)
    assert first.delay == 0.0
    ask(llm, openai())
    assert whole(ask(llm, openai()))["created"] == whole(first)["created"]
    assert [entry.latency for entry in llm.journal.entries()] == [100.0, 0.0, 0.0]


def test_at_a_pace_virtual_seconds_take_real_ones() -> None:
    llm = FakeLLM([text("a").after(3.0)], pacing=Pacing(speed=2.0))
    answer = ask(llm, openai())
    assert isinstance(answer, Whole)
    assert answer.delay == 1.5


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_pace_is_more_than_nothing(speed: float) -> None:
    with pytest.raises(BadInput, match=line_with("speed", "above 0", f"got {speed}")):
        Pacing(speed)


def test_models_are_listed_as_each_provider_lists_them() -> None:
    llm = FakeLLM(models=["gpt-4o", "o3"])

    def get(target: str, **headers: str) -> object:
        return whole(llm.answer(Incoming("GET", target, headers, b"")))

    listed = get("/v1/models")
    assert isinstance(listed, dict)
    assert [model["id"] for model in listed["data"]] == ["gpt-4o", "o3"]
    anthropic_page = whole(
        llm.answer(Incoming("GET", "/v1/models", {"anthropic-version": "2023-06-01"}, b""))
    )
    assert (anthropic_page["first_id"], anthropic_page["data"][1]["type"]) == ("gpt-4o", "model")
    google = get("/v1beta/models")
    assert isinstance(google, dict)
    assert google["models"][0]["name"] == "models/gpt-4o"
    status, message = error(llm.answer(Incoming("GET", "/v1/models/nope", {}, b"")))
    assert (status, says(message, "model 'nope'", "gpt-4o, o3")) == (404, True)


@table_test(
    "target",
    [
        "/etc/passwd",
        "http://[::1/v1/models",
        "/v1/models/../../etc/passwd",
        "/v1/models/%2e%2e/secret",
        "/..%2f..%2fv1/chat/completions",
        "*",
        "",
    ],
)
def test_no_path_leads_to_a_file(target: str) -> None:
    status, message = error(FakeLLM().answer(Incoming("GET", target, {}, b"")))
    assert status == 404
    assert message.startswith("unknown path ")


def test_the_wrong_method_and_a_stream_that_is_no_event_stream_are_told_so() -> None:
    llm = FakeLLM()
    status, message = error(llm.answer(Incoming("GET", OPENAI, {}, b"")))
    assert (status, says(message, OPENAI, "GET", "use POST")) == (405, True)
    target = GEMINI_STREAM.partition("?")[0]
    status, message = error(llm.answer(Incoming("POST", target, {}, b"{}")))
    assert (status, says(message, target, "streams", "?alt=sse")) == (400, True)


def test_the_journal_page_shows_what_was_asked_without_credentials() -> None:
    llm = FakeLLM([text("x"), text("y")])
    ask(llm, openai("hello"), authorization="Bearer sk-planted", x_api_key="planted")
    ask(llm, gemini(), GEMINI + "?key=planted")
    page = llm.answer(Incoming("GET", "/statek/journal", {}, b""))
    assert isinstance(page, Whole)
    assert b"planted" not in page.body
    first, second = json.loads(page.body)
    assert (first["body"]["messages"][0]["content"], first["status"], first["reply"]) == ("hello", 200, 1)
    assert second["target"] == f"{GEMINI}?key=REDACTED"


def test_what_is_unused_can_be_asked_over_http() -> None:
    llm = FakeLLM([text("one"), text("two").on("never")])
    page = llm.answer(Incoming("GET", "/statek/unused", {}, b""))
    assert isinstance(page, Whole)
    first, second = json.loads(page.body)
    assert first == "reply 1: text 'one'"
    assert says(second, "reply 2", "text 'two'", "last message", "'never'")


def test_a_new_script_starts_everything_anew() -> None:
    llm = FakeLLM([text("a").after(5.0)])
    ask(llm, openai())
    llm.play([text("b").on(model=equals("gpt-4o"))])
    assert whole(ask(llm, openai()))["choices"][0]["message"]["content"] == "b"
    assert [entry.number for entry in llm.journal.entries()] == [1]


def test_a_client_that_posts_to_a_place_that_is_not_there_fails_the_check() -> None:
    llm = FakeLLM()
    assert error(llm.answer(Incoming("POST", "/v1/images", {}, b"{}")))[0] == 404
    with pytest.raises(UnmatchedRequest, match=r"^POST /v1/images: unknown path /v1/images; .*"):
        llm.check_finished()


def test_an_attempt_beyond_reason_is_no_attempt() -> None:
    llm = FakeLLM([text("x").when(attempt=1)])
    whole(ask(llm, openai(), x_stainless_retry_count="9" * 5000))


def test_faults_that_leave_nothing_leave_nothing_to_damage() -> None:
    llm = FakeLLM()
    struck: tuple[Fault, ...] = (Reset(after=0), Truncated(), SlowFirstByte(1.0))
    llm.play([text("Hello.")], faults=[FaultRule(fault=fault, rate=1.0) for fault in struck])
    assert ask(llm, openai(stream=True)) == Streamed(frames=(), reset=True)


def test_a_scripted_stream_keeps_a_pace_of_its_own() -> None:
    llm = FakeLLM([text("Hello there.").after(1.0)], pacing=Pacing(speed=10.0, token_seconds=0.5))
    answer = ask(llm, openai(stream=True))
    assert isinstance(answer, Streamed)
    assert [frame.delay for frame in answer.frames] == [0.1] + [0.05] * 5
    assert llm.journal.entries()[0].latency == 1.0 + 5 * 0.5


@pytest.mark.parametrize("seconds", [-1.0, float("inf")])
def test_a_token_takes_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(BadInput, match=line_with("finite", "seconds per token", f"got {seconds}")):
        Pacing(token_seconds=seconds)


def test_code_is_sent_in_the_chat_style_that_the_script_names() -> None:
    llm = FakeLLM()
    llm.play(["exit(1)"], styles="MARKDOWN")
    content = whole(ask(llm, openai()))["choices"][0]["message"]["content"]
    assert content == "```python\nexit(1)\n```"


CALLED = {
    "role": "assistant",
    "tool_calls": [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for name in ("c1", "c2")
    ],
}
ANSWERS = [{"role": "tool", "tool_call_id": name, "content": "seen"} for name in ("c2", "c1")]
NEXT = {"role": "user", "content": "And?"}


@table_test(
    ("messages", "problem"),
    [
        ([NEXT, CALLED, *ANSWERS], None),
        ([CALLED, *ANSWERS, CALLED, *ANSWERS, NEXT], None),
        ([NEXT, CALLED], "tool_call_ids did not have response messages: c1, c2"),
        ([CALLED, ANSWERS[0], NEXT], "tool_call_ids did not have response messages: c1"),
        (
            [NEXT, ANSWERS[0]],
            "must be a response to a preceding message with 'tool_calls'; there is no call c2",
        ),
        ([CALLED, *ANSWERS, ANSWERS[0]], "there is no call c2"),
        ([CALLED, ANSWERS[0], CALLED, *ANSWERS], "tool_call_ids did not have response messages: c1"),
    ],
)
def test_calls_and_results_out_of_turn_are_refused_as_the_provider_does(
    messages: list[JSON], problem: str | None
) -> None:
    llm = FakeLLM([text("done").forever()])
    answer = ask(llm, openai(messages=messages))
    if problem is None:
        assert whole(answer)["choices"][0]["message"]["content"] == "done"
        return
    status, message = error(answer)
    assert status == 400
    assert f"{problem} (the provider rejects this; to accept it here, use" in message
    llm.play([text("done")], ignored=["messages"])
    assert whole(ask(llm, openai(messages=messages)))["choices"][0]["message"]["content"] == "done"


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
RESPONSE = {
    "role": "user",
    "parts": [{"functionResponse": {"id": "7", "name": "look", "response": {"at": 1}}}],
}
ASKED = {"role": "user", "parts": [{"text": "And?"}]}


@table_test(
    ("target", "body", "problem"),
    [
        (ANTHROPIC, anthropic(messages=[NEXT, USE, RESULT]), ""),
        (
            ANTHROPIC,
            anthropic(messages=[NEXT, USE, NEXT]),
            "`tool_use` ids were found without `tool_result` blocks",
        ),
        (
            ANTHROPIC,
            anthropic(messages=[NEXT, RESULT]),
            "unexpected `tool_use_id` found in `tool_result` blocks: t1",
        ),
        (GEMINI, gemini(contents=[ASKED, CALL, RESPONSE]), ""),
        (
            GEMINI,
            gemini(contents=[ASKED, CALL, ASKED]),
            "number of function response parts is equal to the number",
        ),
        (
            GEMINI,
            gemini(contents=[ASKED, RESPONSE]),
            "function response turn comes immediately after a function",
        ),
    ],
)
def test_other_formats_refuse_them_too(target: str, body: JSON, problem: str) -> None:
    answer = ask(FakeLLM([text("done")]), body, target)
    assert isinstance(answer, Whole)
    assert (answer.status, problem in answer.body.decode()) == (400 if problem else 200, True)
