"""A scripted call is one that the request offers, or says that it is meant to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from statek_sim import text, tool_call, tool_calls
from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.script import Reply, ScriptedCall, computed
from statek_sim.server.exchange import Whole
from statek_sim.server.llm import FakeLLM
from tests.server.asking import ANTHROPIC, GEMINI, OPENAI, anthropic, ask, error, gemini, openai
from tests.tables import table_test

SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}, "days": {}}, "required": ["city"]}
OFFERED = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
OPEN = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {**SCHEMA, "additionalProperties": True}},
    }
]


@table_test(
    ("reply", "problem"),
    [
        (
            tool_call("get_wether", city="Oslo"),
            "calls 'get_wether', but the request offers get_weather. Did you mean",
        ),
        (tool_call("get_weather", town="Oslo"), "calls get_weather with 'town', but it takes city, days."),
        (tool_call("get_weather", days=2), "calls get_weather without 'city', which it requires."),
        (
            tool_calls(ScriptedCall("get_weather", {"city": "Oslo"}), ScriptedCall("look", {})),
            "calls 'look', but the request offers get_weather.",
        ),
    ],
)
def test_a_typo_in_a_script_fails_the_test(reply: Reply, problem: str) -> None:
    _refused(reply, openai(tools=OFFERED), problem)


def test_a_call_of_a_request_that_offers_no_tools_fails_the_test() -> None:
    _refused(tool_call("get_weather"), openai(), "calls 'get_weather', but the request offers no tools.")


def _refused(reply: Reply, body: Any, problem: str) -> None:
    llm = FakeLLM([reply])
    status, said = error(ask(llm, body))
    assert status == 422
    assert f"reply 1 {problem}" in said
    assert ".mistaken()" in said
    with pytest.raises(UnmatchedRequest):
        llm.check_finished()


@table_test(
    ("target", "body"),
    [
        (OPENAI, openai(tools=OFFERED)),
        (
            "/v1/responses",
            {
                "model": "m",
                "input": "hi",
                "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}],
            },
        ),
        (ANTHROPIC, anthropic(tools=[{"name": "look", "input_schema": SCHEMA}])),
        (GEMINI, gemini(tools=[{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}])),
    ],
)
def test_every_format_is_held_against_its_tools(target: str, body: Any) -> None:
    answer = ask(FakeLLM([tool_call("lok", city="Oslo")]), body, target)
    assert isinstance(answer, Whole)
    assert answer.status == 422


@table_test(
    ("reply", "tools"),
    [
        (tool_call("get_weather", city="Oslo"), OFFERED),
        (tool_call("get_weather", city=5, days=2), OFFERED),
        (tool_call("get_weather", city="Oslo", region="north"), OPEN),
        (tool_call("get_wether").mistaken(), OFFERED),
        (computed(lambda _: tool_call("get_wether")), OFFERED),
        (tool_call("anything").mistaken(), []),
        (tool_call("anything", city="Oslo"), [{"type": "function", "function": {"name": "anything"}}]),
        (text("Rain."), OFFERED),
    ],
)
def test_what_is_offered_or_meant_is_sent(reply: Reply, tools: list[Any]) -> None:
    answer = ask(FakeLLM([reply]), openai(**({"tools": tools} if tools else {})))
    assert isinstance(answer, Whole)
    assert answer.status == 200, answer.body
