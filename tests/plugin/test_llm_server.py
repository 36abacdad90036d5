"""The fixture `statek_llm_server`, in test suites of its own."""

from __future__ import annotations

import pytest

from pytest_statek.plugin import NO_KEY

_HEAD = """
import json, urllib.request
from statek_sim.providers.script import text
from statek_sim.server.fault import FaultRule, HttpError

def ask(server, message):
    body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": message}]})
    request = urllib.request.Request(server.openai_url + "/chat/completions", body.encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["choices"][0]["message"]["content"]
"""


def run(pytester: pytest.Pytester, test: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(_HEAD + test)
    return pytester.runpytest("-p", "no:cacheprovider", *options)


def test_a_test_points_any_client_at_the_server(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(statek_llm_server):
    statek_llm_server.script([text("Hello.").on("Hi.")])
    assert ask(statek_llm_server, "Hi.") == "Hello."
    (request,) = statek_llm_server.requests
    assert request.json["messages"][0]["content"] == "Hi."
""",
    )
    result.assert_outcomes(passed=1)


def test_escape_sequences_of_a_request_do_not_work_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import httpx

        MESSAGES = [{"role": "user", "content": "\\x1b[2J gone \\x9b31m"}]

        def test_no_reply(statek_llm_server):
            statek_llm_server.script([])
            url = statek_llm_server.openai_url + "/chat/completions"
            httpx.post(url, json={"model": "\\x1b[31m", "messages": MESSAGES}).raise_for_status()
        """
    )
    shown = pytester.runpytest_subprocess("-q").stdout.str()
    assert "user: \\x1b[2J gone \\x9b31m" in shown
    assert not {"\x1b", "\x9b"} & set(shown)


def test_replies_and_faults_left_over_fail_a_test_that_passed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_reply(statek_llm_server):
    statek_llm_server.script([text("one"), text("two")])
    assert ask(statek_llm_server, "Hi.") == "one"

def test_fault(statek_llm_server):
    statek_llm_server.script([text("one")], faults=[FaultRule(fault=HttpError(500), positions=(2,))])
    assert ask(statek_llm_server, "Hi.") == "one"
""",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "1 scripted reply was never used",
            "  reply 2: text 'two'",
            "*fake LLM requests*",
            "1. /v1/chat/completions -> 200: reply 1: text 'one'",
            "fault HttpError(status=500, retry_after=None) on request 2 affected no request; requests: 1",
        ]
    )


def test_a_client_that_never_reaches_the_server_is_explained(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(statek_llm_server):
    statek_llm_server.script([text("one")])
    raise TypeError("Could not resolve authentication method")
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E * TypeError: Could not resolve authentication method",
            "*fake LLM requests*",
            "no request reached the server; if a client was created before the test, *",
        ]
    )


def test_a_request_without_a_reply_fails_the_test_even_where_the_client_hides_it(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
def test_it(statek_llm_server):
    statek_llm_server.script([text("Hello.").on("Hi.")])
    try:
        ask(statek_llm_server, "Hi!")
    except Exception:
        pass
    ask(statek_llm_server, "Hi.")
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "request 1 (POST /v1/chat/completions, *) does not match the remaining reply in the script",
            "nearest is reply 1: text 'Hello.' when last message equals 'Hi.'",
            "  last message: expected equals 'Hi.', got 'Hi!'",
        ]
    )


def test_a_server_without_a_script_answers_nobody(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(statek_llm_server):
    try:
        ask(statek_llm_server, "Hi!")
    except Exception:
        pass
""",
    )
    result.assert_outcomes(failed=1)


def test_other_machines_are_out_of_reach_and_the_server_is_not(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import socket, pytest
from statek_sim.errors import NetworkForbidden

def test_it(statek_llm_server):
    with pytest.raises(NetworkForbidden):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    statek_llm_server.script([text("Hello.")])
    ask(statek_llm_server, "Hi.")

@pytest.mark.statek(allow_network=True)
def test_allowed(statek_llm_server):
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 1), timeout=1)
""",
    )
    result.assert_outcomes(passed=2)


def test_workers_side_by_side_have_servers_of_their_own(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import pytest

from pytest_statek.plugin import NO_KEY

@pytest.mark.parametrize("number", range(12))
def test_it(statek_llm_server, number):
    statek_llm_server.script([text(str(number)).times(3)])
    assert [ask(statek_llm_server, "Hi.") for _ in range(3)] == [str(number)] * 3
""",
        "-n",
        "2",
    )
    result.assert_outcomes(passed=12)


def test_it_works_beside_the_fixtures_that_freeze_the_clock(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        _HEAD
        + """
from statek_sim.server.fault import SlowFirstByte

def test_it(statek_runtime, statek_llm_server):
    slow = FaultRule(fault=SlowFirstByte(0.05), positions=(1,))
    statek_llm_server.script([text("Hello.")], faults=[slow])
    assert ask(statek_llm_server, "Hi.") == "Hello."
"""
    )
    # In a process of its own: freezegun looks into every module that is loaded.
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_clients_find_the_server_by_their_own_variables(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://mine.example/v1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "mine")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    result = run(
        pytester,
        """
import os
import anthropic, openai
from google import genai

def test_it(statek_llm_server):
    statek_llm_server.script([text("one"), text("two"), text("three")])
    question = [{"role": "user", "content": "Hi."}]
    with openai.OpenAI() as client:
        assert client.chat.completions.create(model="gpt-4o", messages=question).choices[0].message.content == "one"
    with anthropic.Anthropic() as client:
        assert client.messages.create(model="claude-test", max_tokens=9, messages=question).content[0].text == "two"
    with genai.Client() as client:
        assert client.models.generate_content(model="gemini-test", contents="Hi.").text == "three"

def test_afterwards():
    assert os.environ["OPENAI_BASE_URL"] == "https://mine.example/v1"
    assert os.environ["ANTHROPIC_AUTH_TOKEN"] == "mine"
    assert "GOOGLE_API_KEY" not in os.environ
""",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("api.openai.com", "set OPENAI_BASE_URL * or pass it base_url=statek_llm_server.openai_url*"),
        ("api.anthropic.com", "set ANTHROPIC_BASE_URL * or pass it base_url=statek_llm_server.url*"),
        ("generativelanguage.googleapis.com", "set GOOGLE_GEMINI_BASE_URL * or pass it http_options=*"),
    ],
)
def test_a_client_that_calls_the_real_provider_is_told_which_setting_to_change(
    pytester: pytest.Pytester, host: str, told: str
) -> None:
    result = run(
        pytester,
        f"""
import socket

def test_it(statek_llm_server):
    socket.create_connection(("{host}", 443), timeout=1)
""",
    )
    result.stdout.fnmatch_lines([f"*{host}*forbidden here; a client of * made this call: {told}"])


def test_a_client_that_was_created_in_an_earlier_test_reaches_the_server_of_a_later_one(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
import functools, openai

client = functools.cache(openai.OpenAI)

def asked():
    question = [{"role": "user", "content": "Hi."}]
    return client().chat.completions.create(model="gpt-4o", messages=question).choices[0].message.content

def test_one(statek_llm_server):
    statek_llm_server.script([text("one")])
    assert asked() == "one"

def test_two(statek_llm_server):
    statek_llm_server.script([text("two")])
    assert asked() == "two"
""",
    )
    result.assert_outcomes(passed=2)


def test_a_mismatch_is_the_failure_and_what_the_client_raised_stands_below(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import openai

def test_it(statek_llm_server):
    statek_llm_server.script([text("Hello.").on("Hi.")])
    with openai.OpenAI() as client:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi!"}])
""",
    )
    result.assert_outcomes(failed=1)
    lines = result.stdout.lines
    cause = next(
        at for at, line in enumerate(lines) if "last message: expected equals 'Hi.', got 'Hi!'" in line
    )
    client = next(at for at, line in enumerate(lines) if "openai.UnprocessableEntityError" in line)
    assert cause < client < cause + 30


def test_a_fault_that_is_no_rule_says_how_to_make_it_one(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_fault(statek_llm_server):
    statek_llm_server.script([text("one")], faults=[HttpError(429)])

def test_positions(statek_llm_server):
    FaultRule(fault=HttpError(429), positions=1)
""",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *FaultRule(fault=HttpError(status=429, retry_after=None), positions=(1,))",
            "E *expected positions as a tuple of numbers, such as (1,), got 1",
        ]
    )


def test_a_client_of_the_real_host_fails_its_test_with_the_variable_to_set(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import openai

client = openai.OpenAI(api_key="none", base_url="https://api.openai.com/v1", max_retries=0)

def test_it(statek_llm_server):
    statek_llm_server.script([text("Hello.")])
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi."}])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "a real network connection to 'api.openai.com' port 443 is forbidden here; a client of OpenAI made this "
            "call: set OPENAI_BASE_URL before*base_url=statek_llm_server.openai_url*",
            "*client error*",
            "*NetworkForbidden: a real network connection to*",
        ]
    )


@pytest.mark.parametrize(
    ("made", "advised"),
    [
        ("openai.OpenAI()", True),
        ("genai.Client()", True),
        ("1 / 0", False),
        ("openai.OpenAI(api_key='x').nonsense", False),
    ],
)
def test_a_client_without_a_key_on_import_is_explained(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, made: str, advised: bool
) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(f"import openai\nfrom google import genai\nclient = {made}\n")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    assert (NO_KEY in result.stdout.str()) is advised


def test_a_mismatch_that_the_agent_hides_stands_before_the_assertion_that_fails(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        """
def test_it(statek_llm_server):
    statek_llm_server.script([text("Hello.").on("Hi.")])
    try:
        said = ask(statek_llm_server, "Hi!")
    except Exception:
        said = "I cannot answer."
    assert said == "Hello."
""",
    )
    result.stdout.fnmatch_lines(
        [
            "request 1 (POST /v1/chat/completions, *",
            "*client error*",
            "*AssertionError: assert 'I cannot answer.' == 'Hello.'",
        ]
    )
