"""Tests the weather assistant against the fake LLM."""

import pytest
from agent import answer, forecast, stream
from smolagents.utils import AgentGenerationError

from statek_sim import tool_call, tool_calls
from statek_sim.script import ScriptedCall
from statek_sim.server import FaultRule, HttpError, Reset
from statek_sim.trajectory import call, trajectory


def test_it_looks_before_it_answers(statek_llm_server):
    statek_llm_server.script(
        [tool_call("get_weather", city="Oslo"), tool_call("final_answer", answer="Rain.")]
    )
    assert answer("How is Oslo?") == "Rain."
    run = trajectory(statek_llm_server)
    run.expect_calls(call("get_weather", city="Oslo"), call("final_answer", answer="Rain."))
    # smolagents tells the model its calls and their results as text.
    assert "rain in Oslo, 9 degrees" in str(statek_llm_server.requests[1].json["messages"])


def test_a_rate_limit_is_waited_for(statek_llm_server):
    limit = FaultRule(fault=HttpError(429, retry_after=0.01), positions=(1,))
    statek_llm_server.script([tool_call("final_answer", answer="Rain.")], faults=[limit])
    assert answer("How is Oslo?") == "Rain."
    assert [request.status for request in statek_llm_server.requests] == [429, 200]


def test_thoughts_come_in_pieces(statek_llm_server):
    statek_llm_server.script(
        [
            tool_calls(ScriptedCall("get_weather", {"city": "Oslo"}), text="I look at Oslo."),
            tool_call("final_answer", answer="Rain."),
        ]
    )
    assert "".join(stream("How is Oslo?")) == "I look at Oslo."


def test_a_second_agent_is_asked(statek_llm_server):
    statek_llm_server.script(
        [
            tool_call("geographer", task="Where is Oslo?"),
            tool_call("final_answer", answer="In Norway."),
            tool_call("final_answer", answer="Oslo is in Norway."),
        ]
    )
    assert answer("Where is Oslo, and is it far?") == "Oslo is in Norway."
    trajectory(statek_llm_server).expect_calls(call("geographer", task="Where is Oslo?"), order="subsequence")


def test_a_forecast_is_an_object(statek_llm_server):
    statek_llm_server.script([tool_call("final_answer", answer={"city": "Oslo", "degrees": 9})])
    assert forecast("How is Oslo?") == {"city": "Oslo", "degrees": 9}


def test_found_a_stream_that_is_cut_is_not_tried_again(statek_llm_server):
    cut = FaultRule(fault=Reset(after=3), positions=(1,))
    statek_llm_server.script([tool_call("final_answer", answer="Rain.")], faults=[cut])
    with pytest.raises(AgentGenerationError):
        list(stream("How is Oslo?"))
