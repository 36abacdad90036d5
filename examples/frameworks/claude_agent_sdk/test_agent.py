"""Tests the weather assistant against the fake LLM."""

import asyncio

from agent import answer, forecast, stream

from statek_sim import text, tool_call
from statek_sim.server import FaultRule, HttpError, Reset
from statek_sim.trajectory import call, trajectory


async def pieces_of(question):
    return [piece async for piece in stream(question) if piece]


def test_it_looks_before_it_answers(statek_llm_server):
    statek_llm_server.script([tool_call("mcp__weather__get_weather", city="Oslo"), text("Rain.")])
    assert asyncio.run(answer("How is Oslo?")) == "Rain."
    run = trajectory(statek_llm_server)
    run.expect_calls(call("mcp__weather__get_weather", city="Oslo"))
    assert "rain in Oslo, 9 degrees" in run.calls[0].result


def test_a_rate_limit_is_waited_for(statek_llm_server):
    limit = FaultRule(fault=HttpError(429, retry_after=0.01), positions=(1,))
    statek_llm_server.script([text("Rain.")], faults=[limit])
    assert asyncio.run(answer("How is Oslo?")) == "Rain."
    assert [request.status for request in statek_llm_server.requests] == [429, 200]


def test_an_answer_comes_in_pieces(statek_llm_server):
    statek_llm_server.script([tool_call("mcp__weather__get_weather", city="Oslo"), text("Rain in Oslo.")])
    pieces = asyncio.run(pieces_of("How is Oslo?"))
    assert len(pieces) > 1
    assert "".join(pieces) == "Rain in Oslo."


def test_a_second_agent_is_asked(statek_llm_server):
    asked = {"description": "find a place", "prompt": "Where is Oslo?", "subagent_type": "geographer"}
    statek_llm_server.script([tool_call("Agent", **asked), text("In Norway."), text("Oslo is in Norway.")])
    assert asyncio.run(answer("Where is Oslo, and is it far?")) == "Oslo is in Norway."
    trajectory(statek_llm_server).expect_calls(call("Agent", ..., prompt="Where is Oslo?"))


def test_a_forecast_is_an_object(statek_llm_server):
    statek_llm_server.script([tool_call("StructuredOutput", city="Oslo", degrees=9)])
    assert asyncio.run(forecast("How is Oslo?")) == {"city": "Oslo", "degrees": 9}


def test_a_stream_that_is_cut_is_tried_again(statek_llm_server):
    cut = FaultRule(fault=Reset(after=3), positions=(1,))
    statek_llm_server.script([text("lost"), text("Rain in Oslo.")], faults=[cut])
    assert asyncio.run(answer("How is Oslo?")) == "Rain in Oslo."
