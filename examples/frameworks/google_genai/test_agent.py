"""Tests the weather assistant against the fake LLM."""

import httpx2
import pytest
from agent import Forecast, answer, forecast, stream

from statek_sim import text, tool_call
from statek_sim.server import FaultRule, HttpError, Reset
from statek_sim.trajectory import call, trajectory


def test_it_looks_before_it_answers(statek_llm_server):
    statek_llm_server.script([tool_call("get_weather", city="Oslo"), text("Rain.")])
    assert answer("How is Oslo?") == "Rain."
    run = trajectory(statek_llm_server)
    run.expect_calls(call("get_weather", city="Oslo"))
    assert run.calls[0].result == "rain in Oslo, 9 degrees"


def test_a_rate_limit_is_waited_for(statek_llm_server):
    limit = FaultRule(fault=HttpError(429, retry_after=0.01), positions=(1,))
    statek_llm_server.script([text("Rain.")], faults=[limit])
    assert answer("How is Oslo?") == "Rain."
    assert [request.status for request in statek_llm_server.requests] == [429, 200]


def test_an_answer_comes_in_pieces(statek_llm_server):
    statek_llm_server.script([text("Rain in Oslo.")])
    pieces = list(stream("How is Oslo?"))
    assert len(pieces) > 1
    assert "".join(pieces) == "Rain in Oslo."


def test_a_second_agent_is_asked(statek_llm_server):
    statek_llm_server.script(
        [
            tool_call("ask_geographer", question="Where is Oslo?"),
            text("In Norway.").on("Where is Oslo?"),
            text("Oslo is in Norway.").on(tool_result="In Norway."),
        ]
    )
    assert answer("Where is Oslo, and is it far?") == "Oslo is in Norway."
    trajectory(statek_llm_server).expect_calls(call("ask_geographer", question="Where is Oslo?"))


def test_a_forecast_is_an_object(statek_llm_server):
    statek_llm_server.script([text('{"city": "Oslo", "degrees": 9}')])
    assert forecast("How is Oslo?") == Forecast(city="Oslo", degrees=9)


def test_found_a_stream_that_is_cut_raises_no_error_of_the_sdk(statek_llm_server):
    cut = FaultRule(fault=Reset(after=3), positions=(1,))
    statek_llm_server.script([text("Rain in Oslo.")], faults=[cut])
    with pytest.raises(httpx2.ReadError):
        list(stream("How is Oslo?"))
