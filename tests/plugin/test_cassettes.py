"""Cassettes around tests: every option and every argument of the marker, with clients that no one here wrote."""

from __future__ import annotations

# Loaded here once: every run in this process would otherwise import them anew.
import os
from collections.abc import Iterator
from pathlib import Path

import anthropic  # noqa: F401
import openai  # noqa: F401
import pytest

import pytest_statek.cassettes  # noqa: F401
from tests.cassettes.provider import Provider, provider

QUESTION = """\
import openai
import pytest

def ask(question, **more):
    client = openai.OpenAI(api_key="sk-proj-0123456789abcdefghijABCDEFGHIJ", base_url={url!r} + "/v1", max_retries=2)
    with client:
        messages = [{{"role": "user", "content": question}}]
        return client.chat.completions.create(model="gpt-4o", messages=messages, **more).choices[0].message.content
"""

CAPITAL = """
@pytest.mark.statek_cassette({arguments})
def test_capital():
    assert ask("the capital of France?") == "Paris is the capital of France."
"""


@pytest.fixture
def live() -> Iterator[Provider]:
    with provider() as running:
        yield running


def project(pytester: pytest.Pytester, url: str, tests: str = CAPITAL, arguments: str = "") -> None:
    pytester.makepyfile(test_geo=QUESTION.format(url=url) + tests.replace("{arguments}", arguments))


def cassette(pytester: pytest.Pytester, name: str = "test_capital") -> Path:
    return pytester.path / "cassettes" / "test_geo" / f"{name}.yaml"


SHOWN = "cassettes/test_geo/test_capital.yaml"


def test_a_cassette_is_recorded_once_and_then_played_without_a_network(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=1)
    recorded = cassette(pytester).read_text("utf-8")
    assert live.requests == ["/v1/chat/completions"]
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=1)
    pytester.runpytest().assert_outcomes(passed=1)
    assert live.requests == ["/v1/chat/completions"]
    assert cassette(pytester).read_text("utf-8") == recorded


def test_without_a_cassette_nothing_goes_live_and_the_message_says_how_to_record(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert not live.requests
    result.stdout.fnmatch_lines(
        [
            f"{SHOWN}: no recording of POST */v1/chat/completions: the cassette does not exist.",
            "  To record it: pytest test_geo.py::test_capital --statek-record=once",
            "  Requested at test_geo.py:8",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_changed_prompt_fails_with_the_nearest_recording_and_what_differs(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once")
    project(pytester, live.url, CAPITAL.replace("of France?", "of Spain?"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert len(live.requests) == 1
    result.stdout.fnmatch_lines(
        [
            f"{SHOWN}: no recording of POST * with this body (1 recorded, 1 not played yet).",
            f"  The nearest is {SHOWN}:2; differences:",
            "    body.messages[[]0[]].content",
            '      recorded: "the capital of France?"',
            '      now:      "the capital of Spain?"',
            "  If the change is intended, record it: pytest test_geo.py::test_capital --statek-record=rewrite",
            "  If it does not matter, ignore it: "
            "@pytest.mark.statek_cassette(ignore=[[]'body.messages[[]0[]].content'[]])",
        ]
    )


def test_what_is_ignored_does_not_count(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url, arguments="ignore=['body.messages[*].content']")
    pytester.runpytest("--statek-record=once")
    changed = CAPITAL.replace("of France?", "of Spain?")
    project(pytester, live.url, changed, arguments="ignore=['body.messages[*].content']")
    pytester.runpytest().assert_outcomes(passed=1)


def test_the_configuration_file_can_say_what_is_ignored(pytester: pytest.Pytester, live: Provider) -> None:
    pytester.makeini("[pytest]\nstatek_cassette_ignore =\n    port\n    body.messages[0].content")
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once")
    project(pytester, "http://127.0.0.1:1", CAPITAL.replace("of France?", "of Spain?"))
    pytester.runpytest().assert_outcomes(passed=1)


TWICE = """
@pytest.mark.statek_cassette({arguments})
def test_capital():
    ask("one")
    ask("two")
"""


def test_the_configuration_file_can_say_what_secrets_there_are(
    pytester: pytest.Pytester, live: Provider
) -> None:
    pytester.makeini(
        "[pytest]\nstatek_cassette_secret_names = Customer\nstatek_cassette_secret_patterns = acme-[0-9a-f]{8}\n"
    )
    test = CAPITAL.replace("of France?", "of France? acme-0123abcd", 1)
    test = test.replace('abcd")', 'abcd", extra_body={"customer": "plum"})')
    project(pytester, live.url, test)
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=1)
    text = cassette(pytester).read_text("utf-8")
    assert "acme-0" not in text
    assert "plum" not in text
    assert "of France? REDACTED" in text
    pytester.runpytest().assert_outcomes(passed=1)
    assert len(live.requests) == 1


def test_a_secret_pattern_that_is_none_is_told(pytester: pytest.Pytester, live: Provider) -> None:
    pytester.makeini("[pytest]\nstatek_cassette_secret_patterns = acme-(\n")
    project(pytester, live.url)
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*secret pattern 'acme-(': not a valid regular expression: missing )*"])


def test_new_episodes_adds_what_is_missing(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url, TWICE.replace('ask("two")', "pass"))
    pytester.runpytest("--statek-record=once")
    before = cassette(pytester).read_text("utf-8")
    project(pytester, live.url, TWICE)
    pytester.runpytest("--statek-record=new_episodes").assert_outcomes(passed=1)
    assert len(live.requests) == 2
    assert cassette(pytester).read_text("utf-8").startswith(before.removesuffix("version: 1\n"))


def test_all_records_everything_and_keeps_what_was_not_asked_again(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url, TWICE)
    pytester.runpytest("--statek-record=once")
    project(pytester, live.url, TWICE.replace('ask("two")', "pass"))
    pytester.runpytest("--statek-record=all").assert_outcomes(passed=1)
    assert len(live.requests) == 3
    assert cassette(pytester).read_text("utf-8").count("method: POST") == 2


def test_rewrite_leaves_only_what_was_asked_now(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url, TWICE)
    pytester.runpytest("--statek-record=once")
    project(pytester, live.url, TWICE.replace('ask("two")', "pass"))
    pytester.runpytest("--statek-record=rewrite").assert_outcomes(passed=1)
    assert cassette(pytester).read_text("utf-8").count("method: POST") == 1


@pytest.mark.parametrize("mode", ["rewrite", "all"])
def test_a_failed_re_recording_leaves_the_cassette_and_puts_the_new_one_aside(
    pytester: pytest.Pytester, live: Provider, mode: str
) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once")
    before = cassette(pytester).read_bytes()
    live.say = lambda body: "Lyon."
    result = pytester.runpytest(f"--statek-record={mode}")
    result.assert_outcomes(failed=1)
    aside = cassette(pytester, "test_capital.new")
    assert cassette(pytester).read_bytes() == before
    assert "Lyon." in aside.read_text("utf-8")
    result.stdout.fnmatch_lines([f"to compare them: statek-sim cassette diff {SHOWN} {aside}"])


@pytest.mark.parametrize("how", ["pytest.skip('not today')", "pytest.xfail('known')"])
@pytest.mark.parametrize("mode", ["rewrite", "all"])
def test_a_test_that_is_skipped_keeps_its_recording_and_has_nothing_to_play(
    pytester: pytest.Pytester, live: Provider, mode: str, how: str
) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once")
    before = cassette(pytester).read_bytes()
    project(pytester, live.url, CAPITAL.replace("    assert ask", f"    {how}\n    assert ask"))
    outcome = "xfailed" if "xfail" in how else "skipped"
    pytester.runpytest(f"--statek-record={mode}").assert_outcomes(**{outcome: 1})
    assert cassette(pytester).read_bytes() == before
    pytester.runpytest().assert_outcomes(**{outcome: 1})


def test_what_is_no_file_is_no_cassette(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url)
    cassette(pytester).parent.mkdir(parents=True)
    os.mkfifo(cassette(pytester))
    result = pytester.runpytest("--statek-record=rewrite")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{SHOWN}: expected a cassette, found a device, pipe or socket"])
    assert cassette(pytester).is_fifo()


def test_unplayed_recordings_fail_the_test(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url, TWICE)
    pytester.runpytest("--statek-record=once")
    project(pytester, live.url, TWICE.replace('ask("two")', "pass"))
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            f"{SHOWN}: 1 of 2 recordings were not played:",
            f"  {SHOWN}:* POST {live.url}/v1/chat/completions",
            "  If they are no longer needed, record the cassette again: "
            "pytest test_geo.py::test_capital --statek-record=rewrite",
        ]
    )


@pytest.mark.parametrize("how", ["option", "ini", "marker"])
def test_unplayed_recordings_can_be_allowed(pytester: pytest.Pytester, live: Provider, how: str) -> None:
    project(pytester, live.url, TWICE)
    pytester.runpytest("--statek-record=once")
    shorter = TWICE.replace('ask("two")', "pass")
    project(pytester, live.url, shorter, arguments="allow_unplayed=True" if how == "marker" else "")
    if how == "ini":
        pytester.makeini("[pytest]\nstatek_allow_unplayed = true")
    pytester.runpytest(*["-ostatek_allow_unplayed=true"] * (how == "option")).assert_outcomes(passed=1)


def test_a_miss_that_the_code_under_test_hides_still_fails(pytester: pytest.Pytester, live: Provider) -> None:
    hiding = CAPITAL.replace("    assert ask", "    try: ask").replace(
        ' == "Paris is the capital of France."', "\n    except BaseException: pass"
    )
    project(pytester, live.url, hiding)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a request had no recording, but the client caught the error:"])


def test_the_marker_chooses_name_and_mode_and_the_command_line_wins(
    pytester: pytest.Pytester, live: Provider
) -> None:
    project(pytester, live.url, arguments="name='shared', mode='once'")
    pytester.runpytest("--statek-record=none").assert_outcomes(failed=1)
    pytester.runpytest().assert_outcomes(passed=1)
    assert cassette(pytester, "shared").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'here.yaml'", "expected keyword arguments, such as name=..., got 'here.yaml'"),
        ("ignored=[]", "unknown argument 'ignored'; expected name, ignore, mode, allow_unplayed."),
        ("ignore='port'", "ignore='port': expected a list of names, such as 'body.metadata.run'"),
        ("ignore=['prt']", "cannot ignore 'prt'; expected body, host, path, port, query, scheme, *"),
        ("mode='always'", "record mode 'always': expected none, once, new_episodes, all, rewrite"),
        ("name='../x'", "name='../x': expected a file name in the test module's cassette folder"),
        ("allow_unplayed=1", "allow_unplayed=1: expected True or False"),
    ],
)
def test_a_wrong_marker_is_told(pytester: pytest.Pytester, arguments: str, message: str) -> None:
    project(pytester, "http://127.0.0.1:1", arguments=arguments)
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    escaped = message.replace("[", "[[]")
    result.stdout.fnmatch_lines([f"test_geo.py::test_capital: @pytest.mark.statek_cassette: {escaped}*"])


def test_a_damaged_cassette_is_told_with_its_line(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url)
    pytester.runpytest("--statek-record=once")
    whole = cassette(pytester).read_text("utf-8")
    cassette(pytester).write_text(whole[: len(whole) // 2], "utf-8")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines([r".*test_capital\.yaml:\d+: .*(seems to be truncated|is truncated).*"])


def test_the_fixture_is_the_open_cassette(pytester: pytest.Pytester, live: Provider) -> None:
    tests = CAPITAL.replace("def test_capital():", "def test_capital(statek_cassette):")
    project(pytester, live.url, tests + "    assert len(statek_cassette.unplayed()) == 0\n")
    pytester.runpytest("--statek-record=once").assert_outcomes(passed=1)
    pytester.runpytest().assert_outcomes(passed=1)


def test_the_fixture_needs_the_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(statek_cassette): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*::test_one: mark the test with @pytest.mark.statek_cassette"])


def test_while_a_cassette_plays_no_other_real_connection_is_possible(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket, pytest
        @pytest.mark.statek_cassette
        def test_one():
            socket.create_connection(("203.0.113.1", 80), timeout=1)
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*NetworkForbidden: a real network connection to '203.0.113.1' port 80 is forbidden*"]
    )


@pytest.mark.slow
def test_workers_record_and_play_as_one_process_does(pytester: pytest.Pytester, live: Provider) -> None:
    project(pytester, live.url)
    pytester.runpytest("-n", "1", "--statek-record=once").assert_outcomes(passed=1)
    pytester.runpytest("-n", "1").assert_outcomes(passed=1)
    assert len(live.requests) == 1


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (".", "expected a file to write, found a folder"),
        ("nowhere/list", "no such folder; create it or choose another"),
        ("/dev/full", "cannot be written: No space left on device"),
    ],
)
def test_a_list_of_cassettes_that_cannot_be_written_is_refused(
    pytester: pytest.Pytester, file: str, problem: str
) -> None:
    if file == "/dev/full" and not Path(file).exists():
        pytest.skip("there is no device that is always full")
    pytester.makepyfile("import pytest\n@pytest.mark.statek_cassette\ndef test_one(): pass")
    result = pytester.runpytest(f"--statek-cassette-list={file}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: statek: --statek-cassette-list={file}: {problem}" in result.stderr.lines
