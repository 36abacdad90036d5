"""What an agent did, as data, whoever runs it: a client of the server, a guest, an agent, a job."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from statek_sim import Agent, AgentHarness, Runtime, ScriptedLLM, code, text, tool, tool_call
from statek_sim.cassettes import CassetteSession, RecordMode
from statek_sim.cassettes.exchange import Request as HttpRequest
from statek_sim.cassettes.exchange import Response
from statek_sim.errors import BadInput
from statek_sim.guests import Guest
from statek_sim.providers.script import Reply, ScriptedCall, computed, raw, tool_calls
from statek_sim.scriptable import ScriptableLLM
from statek_sim.server import FaultRule, HttpError, Reset
from statek_sim.server.exchange import Answer, Whole
from statek_sim.server.llm import FakeLLM
from statek_sim.trajectory import Call, ExpectedCall, Request, Trajectory, call, trajectory
from tests.says import line_with
from tests.server.asking import (
    ANTHROPIC,
    ANTHROPIC_TOOLS,
    GEMINI,
    GEMINI_STREAM,
    GEMINI_TOOLS,
    OPENAI,
    OPENAI_TOOLS,
    RESPONSES_TOOLS,
    anthropic,
    ask,
    gemini,
    openai,
    streamed,
    whole,
)
from tests.tables import table_test


class Served:
    """An agent of a few lines that works with each format, and the server that it asks."""

    def __init__(
        self, *script: Reply, faults: tuple[FaultRule, ...] = (), cassette: CassetteSession | None = None
    ) -> None:
        self.llm = FakeLLM(script, faults=faults)
        self.cassette = cassette

    @property
    def requests(self) -> Any:
        return self.llm.journal.entries()

    def work(self, target: str, question: str = "hi", *, rewrite: bool = False) -> str:
        """Ask until there are no calls; with `rewrite` the first message is another in each request."""
        said: list[Any] = []
        while True:
            first = f"{question} {len(said)}" if rewrite else question
            request = _request(target, first, said)
            answer = self.answer(request, target) if self.cassette is None else self.tapped(request, target)
            if not isinstance(answer, Whole) or answer.status != 200:
                continue
            calls, spoken = _read(target, whole(answer), said)
            if not calls:
                return spoken

    def answer(self, request: dict[str, Any], target: str) -> Answer:
        return ask(self.llm, request, target)

    def tapped(self, request: dict[str, Any], target: str) -> Answer:
        """Answer from the cassette, or have it recorded."""
        assert self.cassette is not None
        sent = HttpRequest(method="POST", uri=f"https://llm.test{target}", body=json.dumps(request).encode())
        played = self.cassette.play(sent)
        if played is None:
            answer = self.answer(request, target)
            assert isinstance(answer, Whole)
            played = Response(status=answer.status, body=answer.body)
            self.cassette.record(sent, played)
        return Whole(status=played.status, body=played.body)


OFFERED = ("get_weather", "look", "lost")


def _request(target: str, question: str, said: list[Any]) -> dict[str, Any]:
    if target == GEMINI:
        offered = [{"functionDeclarations": [{"name": name} for name in OFFERED]}]
        return {"contents": [{"role": "user", "parts": [{"text": question}]}, *said], "tools": offered}
    common = {"model": "m", "messages": [{"role": "user", "content": question}, *said]}
    if target == ANTHROPIC:
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in OFFERED]
        return common | {"max_tokens": 100, "tools": tools}
    return common | {"tools": [{"type": "function", "function": {"name": name}} for name in OFFERED]}


def _read(target: str, body: Any, said: list[Any]) -> tuple[bool, str]:
    if target == OPENAI:
        message = body["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        said += [
            {key: value for key, value in message.items() if value},
            *({"role": "tool", "tool_call_id": one["id"], "content": f"did {one['id']}"} for one in calls),
        ]
        return bool(calls), message["content"] or ""
    if target == ANTHROPIC:
        calls = [block for block in body["content"] if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": one["id"], "content": f"did {one['id']}"} for one in calls
        ]
        said += [{"role": "assistant", "content": body["content"]}, {"role": "user", "content": results}]
        return bool(calls), body["content"][0].get("text", "")
    parts = body["candidates"][0]["content"]["parts"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [
        {
            "functionResponse": {
                "id": one["id"],
                "name": one["name"],
                "response": {"content": f"did {one['id']}"},
            }
        }
        for one in calls
    ]
    said += [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    return bool(calls), parts[0].get("text", "")


RESPONSES = "/v1/responses"
BOTH = tool_calls(ScriptedCall("look", {"at": 1}), ScriptedCall("look", {"at": 2}))


@table_test("target", [OPENAI, ANTHROPIC, GEMINI])
def test_a_server_knows_calls_with_their_arguments_and_results(target: str) -> None:
    agent = Served(tool_call("get_weather", city="Oslo"), BOTH, text("Rain."))
    assert agent.work(target) == "Rain."
    run = trajectory(agent)
    assert run.calls == (
        Call("get_weather", {"city": "Oslo"}, "did call-1-1", None, 1),
        Call("look", {"at": 1}, "did call-2-1", None, 2),
        Call("look", {"at": 2}, "did call-2-2", None, 2),
    )
    assert run.answer == "Rain."


def test_calls_whose_answer_was_lost_are_none() -> None:
    faults = (
        FaultRule(fault=HttpError(429), positions=(1,)),
        FaultRule(fault=Reset(), positions=(2,)),
    )
    agent = Served(tool_call("lost"), tool_call("look"), text("Rain."), faults=faults)
    agent.work(OPENAI)
    assert [one.name for one in trajectory(agent).calls] == ["look"]


def test_results_are_found_when_the_history_is_written_anew() -> None:
    agent = Served(tool_call("look", at=1), tool_call("look", at=2), text("Rain."))
    agent.work(OPENAI, rewrite=True)
    assert [one.result for one in trajectory(agent).calls] == ["did call-1-1", "did call-2-1"]


def test_a_call_that_nobody_went_on_from_has_no_result() -> None:
    agent = Served(tool_call("look"))
    ask(agent.llm, _request(OPENAI, "hi", []), OPENAI)
    assert trajectory(agent).calls == (Call("look", {}, None, None, 1),)
    assert trajectory(agent).answer is None


def test_the_calls_of_a_function_are_known() -> None:
    agent = Served(computed(lambda _: tool_call("look", at=3)), text("Rain."))
    ask(agent.llm, _request(OPENAI, "hi", []), OPENAI)
    assert trajectory(agent).calls == (Call("look", {"at": 3}, None, None, 1),)


def test_the_calls_of_a_raw_body_are_known_from_the_next_request() -> None:
    function = {"name": "look", "arguments": '{"at": 3}'}
    message: dict[str, Any] = {
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
        "content": None,
    }
    agent = Served(raw({"choices": [{"message": {**message, "role": "assistant"}}]}), text("Rain."))
    agent.work(OPENAI)
    assert trajectory(agent).calls == (Call("look", {"at": 3}, "did a", None, 1),)


ORDER = tool_call("look", at="nut", pieces=55)


@table_test("target", [OPENAI, ANTHROPIC, GEMINI])
@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        (ORDER.with_arguments('{"at": "bolt"}'), {"at": "bolt"}),
        (ORDER.with_arguments("[1]"), "[1]"),
        (ORDER.with_arguments('{"at": '), '{"at": '),
        (ORDER.cut_short(), '{"at": "nut",'),
    ],
)
def test_the_record_has_the_arguments_that_were_sent(target: str, reply: Reply, sent: Any) -> None:
    agent = Served(reply)
    ask(agent.llm, _request(target, "hi", []), target)
    assert [one.arguments for one in trajectory(agent).calls] == [sent]


def test_the_record_has_the_answer_as_it_was_cut() -> None:
    agent = Served(text("Rain today.").cut_short())
    agent.work(OPENAI)
    assert trajectory(agent).answer == "Rain "


def test_a_guest_and_an_agent_leave_the_same_trajectory() -> None:
    def look(at: int) -> str:
        if at == 2:
            raise ValueError("no such place")
        return f"seen {at}"

    script = [tool_call("look", at=1), tool_call("look", at=2), text("Rain.")]
    guest = Guest(script, tools=[look])
    said: list[Any] = [{"role": "user", "content": "hi"}]
    offered = _request(OPENAI, "hi", [])["tools"]
    while calls := (message := guest.ask(said, offered)).get("tool_calls"):
        said.append({key: value for key, value in message.items() if value})
        for one in calls:
            try:
                result = guest.tools["look"](**json.loads(one["function"]["arguments"]))
            except ValueError as error:
                result = str(error)
            said.append({"role": "tool", "tool_call_id": one["id"], "content": result})
    guest.check(message["content"])

    llm = ScriptableLLM()
    llm.script(script)
    harness = AgentHarness(llm, tools=[look])
    harness.run("hi")
    for source in (guest, harness, harness.trace):
        run = trajectory(source)
        assert [(one.name, one.arguments, one.turn) for one in run.calls] == [
            ("look", {"at": 1}, 1),
            ("look", {"at": 2}, 2),
        ]
        assert run.calls[0].result == "seen 1"
        assert "ValueError: no such place" in (run.calls[1].error or "")
        assert run.answer == "Rain."


def test_arguments_that_a_trace_cannot_give_back_are_a_text() -> None:
    @tool()
    def look(at: Any, **_: Any) -> str:
        return f"seen {at}"

    runtime = Runtime(ScriptedLLM({"worker": [code("look(at=1)\nlook(2)\nlook(at=min)\nexit('done')")]}))
    runtime.create_job(Agent("worker", tools=[look]))
    runtime.run()
    run = trajectory(runtime)
    assert [one.arguments for one in run.calls[:2]] == [{"at": 1}, "2"]
    assert isinstance(run.calls[2].arguments, str)
    assert run.calls[0].result == "seen 1"


RUN = Trajectory(
    (
        Call("search", {"q": "weather in Oslo", "page": 2, "tags": ["a", {"b": 1}]}, "rain", None, 1),
        Call("send", {"to": "ada@example.org", "body": "Rain."}, "sent", None, 2),
        Call("search", {"q": "wind"}, None, None, 3),
        Call("odd", "{broken", None, None, 3),
    )
)
FIRST = call("search", ..., q=re.compile("Oslo"))
SENT = call("send", to=ANY, body=lambda body: body.endswith("."))
SECOND = call("search", q="wind")
ODD = call("odd", ...)


@table_test(
    ("wanted", "order"),
    [
        ((FIRST, SENT, SECOND, ODD), "exact"),
        (
            (call("search", q=ANY, page=range(1, 3), tags=["a", {"b": ANY}]), SENT, call("s*", ...), ODD),
            "exact",
        ),
        ((FIRST, SECOND), "subsequence"),
        ((SENT,), "subsequence"),
        ((), "subsequence"),
        ((SECOND, FIRST), "any"),
        ((call("search", ...), call("search", ...)), "any"),
    ],
)
def test_calls_that_are_as_expected(wanted: tuple[ExpectedCall, ...], order: Any) -> None:
    RUN.expect_calls(*wanted, order=order)


@table_test(
    ("wanted", "order", "problem"),
    [
        ((FIRST, SENT, SECOND), "exact", "call 4 is one too many: odd({broken)"),
        (
            (FIRST, SECOND),
            "exact",
            "call 2: expected search(q='wind'), got send(to='ada@example.org', body='Rain.')",
        ),
        (
            (FIRST, call("send", body="Sun.", copy=True), SECOND),
            "exact",
            "call 2 (send): expected body='Sun.', copy=True, no to, "
            "got body='Rain.', no copy, to='ada@example.org'\n",
        ),
        ((call("lost"),), "subsequence", "expected lost(): it was not called\n"),
        ((FIRST, SENT, SECOND, ODD, ODD), "exact", "call 5: expected odd(...), got no more calls"),
        ((call("search", q=re.compile("Oslo")),), "any", "expected search(q=/Oslo/): it was not called"),
        (
            (call("search", ..., page=range(3, 9)),),
            "any",
            "expected search(..., page=range(3, 9)): it was not called",
        ),
        ((call("odd"),), "any", "expected odd(): it was not called"),
        ((SECOND, FIRST), "subsequence", "after the preceding expected calls"),
        ((SENT, SENT), "any", "it was not called"),
        ((call("search", ..., tags=["a", {"b": 2}]),), "any", "it was not called"),
        ((call("search", ..., tags=["a"]),), "any", "it was not called"),
    ],
)
def test_calls_that_are_not_as_expected(wanted: tuple[ExpectedCall, ...], order: Any, problem: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(problem)) as raised:
        RUN.expect_calls(*wanted, order=order)
    assert "send(to='ada@example.org', body='Rain.')" in str(raised.value)


def test_the_message_has_both_sides() -> None:
    with pytest.raises(AssertionError) as raised:
        Trajectory(()).expect_calls(call("a", b=1), call("c"))
    assert str(raised.value).splitlines() == [
        "call 1: expected a(b=1), got no more calls",
        "  expected  called",
        "  a(b=1)    (no calls)",
        "  c()",
    ]


def test_what_must_not_be_called_and_how_often() -> None:
    RUN.never_called("delete_*", "search_*")
    RUN.at_most("search", 2)
    with pytest.raises(AssertionError, match=re.escape("s*d must never be called, but call 2 is send(")):
        RUN.never_called("delete_*", "s*d")
    with pytest.raises(AssertionError, match=r"sea\* was called 2 times, expected at most 1"):
        RUN.at_most("sea*", 1)


def test_arguments_of_an_expected_call_go_by_keyword() -> None:
    message = r"^call 'look' has \{'at': 1\}; pass arguments by keyword: call\('look', name=value\)$"
    with pytest.raises(BadInput, match=message):
        call("look", {"at": 1})  # type: ignore[arg-type]


def test_what_has_no_trajectory_is_refused() -> None:
    with pytest.raises(BadInput, match="neither requests nor a trace"):
        trajectory(5)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="expected 'exact', 'subsequence' or 'any'"):
        RUN.expect_calls(order="some")  # type: ignore[arg-type]


@table_test("target", [OPENAI, ANTHROPIC, GEMINI])
@pytest.mark.parametrize("mode", [RecordMode.ALL, RecordMode.NONE])
def test_a_cassette_has_the_same_record_recorded_and_played(
    target: str, mode: RecordMode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cassette") / "c.yaml"
    limit = FaultRule(fault=HttpError(429), positions=(1,))
    recording = CassetteSession(path, RecordMode.ALL)
    script = tool_call("look", at=3), text("It is 3.").reporting(prompt=100, completion=7)
    agent = Served(*script, faults=(limit,), cassette=recording)
    agent.work(target)
    wanted = trajectory(agent)
    recording.close()
    session = recording
    if mode is RecordMode.NONE:
        session = CassetteSession(path, RecordMode.NONE)
        Served(cassette=session).work(target)
    run = trajectory(session)
    assert (run.calls, run.answer, run.stop) == (wanted.calls, "It is 3.", "answer")
    assert [one.error for one in run.requests] == ["HTTP 429", None, None]
    assert [one.messages for one in run.requests] == [one.messages for one in wanted.requests]
    assert (run.requests[2].prompt_tokens, run.requests[2].completion_tokens) == (100, 7)


@table_test("target", [OPENAI, ANTHROPIC, RESPONSES, GEMINI_STREAM])
def test_streams_of_a_cassette_are_read(target: str) -> None:
    body = {
        OPENAI: openai,
        ANTHROPIC: anthropic,
        RESPONSES: lambda: {"model": "m", "input": "hi"},
        GEMINI_STREAM: gemini,
    }[target]()
    streams = {} if target == GEMINI_STREAM else {"stream": True}
    tools = {
        OPENAI: OPENAI_TOOLS,
        ANTHROPIC: ANTHROPIC_TOOLS,
        RESPONSES: RESPONSES_TOOLS,
        GEMINI_STREAM: GEMINI_TOOLS,
    }
    asked = {**body, **streams, "tools": tools[target]}
    answer = streamed(ask(FakeLLM([tool_call("look", where="Oslo")]), asked, target))
    session = CassetteSession(Path("none.yaml"), RecordMode.ALL)
    headers = (("Content-Type", "text/event-stream"),)
    session.record(
        HttpRequest(method="POST", uri=f"https://llm.test{target}", body=json.dumps(asked).encode()),
        Response(status=200, headers=headers, body=answer),
    )
    session.record(
        HttpRequest(method="POST", uri=f"https://llm.test{target}", body=json.dumps(asked).encode()),
        Response(status=200, headers=headers, body=answer[:40]),
    )
    run = trajectory(session)
    assert run.calls == (Call("look", {"where": "Oslo"}, None, None, 1),)
    assert (run.requests[1].error or "").startswith("cannot parse the response: ")


@table_test("target", [OPENAI, ANTHROPIC, GEMINI])
def test_a_server_tells_requests_and_usage(target: str) -> None:
    limit = FaultRule(fault=HttpError(429), positions=(1,))
    agent = Served(
        tool_call("look", at=3), text("It is 3.").reporting(prompt=100, completion=7), faults=(limit,)
    )
    agent.work(target)
    run = trajectory(agent)
    assert [(one.turn, one.error is None) for one in run.requests] == [(0, False), (1, True), (2, True)]
    assert "429" in (run.requests[0].error or "")
    assert (run.stop, run.blocked, run.usage.turns) == ("answer", (), 2)
    assert run.usage.tokens == 107 + run.requests[1].prompt_tokens + run.requests[1].completion_tokens
    assert run.requests[1].completion_tokens > 0
    assert repr(run).endswith(f"; answer 'It is 3.'; stop 'answer'; turns 2, tokens {run.usage.tokens:,}>")


SPENT = Trajectory(
    (Call("look", {}, "9 degrees, 1,200 m", None, 1),),
    (
        Request(1, "m", (), None, 100, 20),
        Request(0, "m", (), "HTTP 429", 0, 0),
        Request(2, "m", (), None, 150, 30),
    ),
    "It has 9 degrees at 1,200 m.",
)


def test_budgets_of_a_run() -> None:
    SPENT.within(tokens=300, turns=2, cost=0.001, prices=(1.0, 5.0))
    spent = line_with("300 tokens", "at most 299", "2 turns", "at most 1")
    with pytest.raises(AssertionError, match=spent) as raised:
        SPENT.within(tokens=299, turns=1)
    assert str(raised.value).splitlines()[1:] == ["  turn 1: 100 + 20 tokens", "  turn 2: 150 + 30 tokens"]
    with pytest.raises(AssertionError, match=line_with("cost", "0.0005", "at most 0.0004")):
        SPENT.within(cost=0.0004, prices=(1.0, 5.0))
    with pytest.raises(BadInput, match=r"requires prices=\(prompt, completion\)"):
        SPENT.within(cost=1)


def test_an_answer_may_only_quote_what_a_tool_returned() -> None:
    SPENT.answer_quotes_results()
    SPENT.answer_quotes_results(r"\d+ degrees")
    made_up = replace(SPENT, answer="It has 11 degrees.")
    with pytest.raises(AssertionError, match=line_with("'11'", "no tool")):
        made_up.answer_quotes_results()


def test_a_harness_tells_why_it_stopped_and_what_it_refused() -> None:
    llm = ScriptableLLM()
    llm.script([tool_call("lok"), text("Done.")])
    harness = AgentHarness(llm, tools=[])
    harness.run("hi")
    run = trajectory(harness)
    assert (run.stop, run.answer, run.usage.turns) == ("final", "Done.", 2)
    assert [one.name for one in run.blocked] == ["lok"]


def test_the_record_of_a_run_has_few_names() -> None:
    assert len([name for name in dir(Trajectory) if not name.startswith("_")]) <= 15
