"""The fixture `statek_agent`: an agent that calls tools, in a test of a user."""

from __future__ import annotations

import pytest

from statek_sim.providers.script import text, tool_call
from tests.recorded_samples import environment_for, provider_with

TEST = '''\
from statek_sim import text, tool_call


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"22 C in {city}"


def test_the_weather(statek_agent):
    agent = statek_agent(
        tools=[get_weather],
        steps=["get_weather"],
        script=[text("Warm, I guess."), tool_call("get_weather", city="Tokyo"), text("22 C.")],
    )
    run = agent.run("What's the weather in Tokyo?")
    assert (run.answer, run.nudged) == ("22 C.", ["unfinished"])
    assert run.calls == [{"name": "get_weather", "arguments": "city='Tokyo'", "via": "call", "result": "22 C in Tokyo"}]
'''


def test_an_agent_is_made_and_run_in_fifteen_lines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TEST)
    pytester.runpytest("test_it.py").assert_outcomes(passed=1)
    body = TEST.partition("def test_the_weather")[2]
    assert body.count("\n") <= 15


def test_a_setting_that_no_agent_has_is_refused_with_the_one_that_was_meant(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=TEST.replace("tools=[", "tool=["))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    known = "Known: script, provider, tools, steps, prompt,"
    result.stdout.fnmatch_lines([f"*statek_agent(tool=...): unknown setting. Did you mean 'tools'? {known}*"])
    result.stdout.no_fnmatch_line("*TypeError*")


def test_replies_that_nobody_asked_for_fail_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TEST.replace('text("22 C.")]', 'text("22 C."), text("More.")]'))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 scripted reply was never used*"])


def test_the_conversation_of_a_failed_test_is_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TEST.replace('== ("22 C.", ', '== ("23 C.", '))
    result = pytester.runpytest("test_it.py")
    result.stdout.fnmatch_lines(
        ["*STATEK conversation*", "*nudge*unfinished, 1 of 3*", "*get_weather -> 22 C in Tokyo*"]
    )


def test_a_tool_that_goes_to_the_network_fails_the_test(pytester: pytest.Pytester) -> None:
    source = TEST.replace(
        '    return f"22 C in {city}"', '    import socket; socket.create_connection(("192.0.2.1", 80))'
    )
    pytester.makepyfile(test_it=source)
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*192.0.2.1*"])


def test_the_plugin_does_not_load_engine_two_unless_it_is_used(pytester: pytest.Pytester) -> None:
    source = """
import sys

def test_it():
    heavy = ("statek_sim.agent", "jsonschema", "referencing")
    assert not [name for name in sys.modules if name.startswith(heavy)]
"""
    pytester.makepyfile(test_it=source)
    pytester.runpytest_subprocess("test_it.py").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "E *give it one before the run: statek_agent(script=*"),
        (
            "script=[tool_call('get_weather', city='Rome')],",
            "*make a reply before turn 2 the final answer: text without tool calls*",
        ),
    ],
)
def test_a_script_that_is_missing_or_too_short_says_what_to_write(
    pytester: pytest.Pytester, script: str, said: str
) -> None:
    lines = TEST.splitlines(keepends=True)
    told = [f"        {script}\n" if line.lstrip().startswith("script=") else line for line in lines]
    pytester.makepyfile(test_it="".join(told))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("E *exit(...)*")
    result.stdout.no_fnmatch_line("E *statek_llm*")


def test_a_run_has_its_trace(pytester: pytest.Pytester) -> None:
    more = '    assert run.trace is agent.trace and run.trace.events[-1].job == "main"\n'
    pytester.makepyfile(test_it=TEST + more)
    pytester.runpytest("test_it.py").assert_outcomes(passed=1)


# -- cassettes --------------------------------------------------------------------------------------------------

RECORDED = '''\
import pytest


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"22 C in {city}"


@pytest.mark.statek_cassette
def test_the_weather(statek_agent):
    agent = statek_agent(tools=[get_weather], provider="cassette", api="GROQ", model="some-model")
    run = agent.run("What's the weather in Tokyo?")
    assert (run.answer, run.num_turns, run.now()) == ("22 C.", 2, 0.0)
'''


def test_an_agent_is_recorded_once_and_played_without_the_provider(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_it=RECORDED)
    with provider_with(tool_call("get_weather", city="Tokyo"), text("22 C.")) as server:
        for variable, value in environment_for(server, "GROQ").items():
            monkeypatch.setenv(variable, value)
        pytester.runpytest("test_it.py", "--statek-record=once").assert_outcomes(passed=1)
    monkeypatch.delenv("GROQ_API_URL")
    monkeypatch.delenv("GROQ_API_KEY")
    pytester.runpytest("test_it.py").assert_outcomes(passed=1)
    assert len(list(pytester.path.glob("cassettes/**/*.yaml"))) == 1

    pytester.makepyfile(test_it=RECORDED.replace("in Tokyo?", "in Rome?"))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*in Rome?*"])

    pytester.makepyfile(test_it=RECORDED.replace('"GROQ"', '"ANTHROPIC"'))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*test_the_weather.yaml:*in the format 'openai', but ANTHROPIC uses 'anthropic'*"]
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("@pytest.mark.statek_cassette\n", ""),
            '*provider="cassette" requires a cassette: mark the test with @pytest.mark.statek_cassette*',
        ),
        (('"cassette"', '"casette"'), "*provider='casette': expected 'cassette' or an object that answers*"),
        (
            ('provider="cassette"', 'provider="cassette", script=[]'),
            "*expected either a script or a cassette, not both*",
        ),
    ],
)
def test_a_cassette_that_is_not_there_says_what_to_write(
    pytester: pytest.Pytester, change: tuple[str, str], said: str
) -> None:
    pytester.makepyfile(test_it=RECORDED.replace(*change))
    result = pytester.runpytest("test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])
