"""The `statek_` fixtures and the marker, in tests of a user's own tools."""

from __future__ import annotations

from pathlib import Path

import pytest

IMPORTS = """\
import datetime, socket, time
import pytest
from statek_sim import Agent, error_handler, tool
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.providers.script import code, text
from statek_sim.world.queue import QueueOwner, WorkItem

"""

CLAIM = '''\
@pytest.fixture
def claim(statek_queue):
    @error_handler
    def _release(context, error=None):
        owner, item = context
        if item.held_by(owner):
            statek_queue.release(item)

    @tool(error_handler=_release)
    def claim(owner: QueueOwner, **kwargs):
        """Claim the next item."""
        return owner, statek_queue.claim_next(owner)

    return claim

'''


def run(pytester: pytest.Pytester, source: str, *args: str, setup: str = "") -> pytest.RunResult:
    """Run a test module of the project under test."""
    pytester.makepyfile(test_it=IMPORTS + setup + source)
    return pytester.runpytest("test_it.py", *args)


def test_a_tool_test_reads_like_what_it_says(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
@pytest.mark.statek(items=["invoice-1"])
def test_claim_is_released_when_the_harness_stops_the_job(statek_runtime, statek_llm, statek_queue, claim):
    statek_llm.script(worker=[code("owner, item = claim(me)"), code("1/0"), code("1/0"), code("exit()")])
    job = statek_runtime.create_job(Agent("worker", tools=[claim]), shared_vars={"me": QueueOwner("w-1")})
    statek_runtime.run()
    assert job.stop_reason == "max_consecutive_exceptions"
    assert job.trace.tool_calls("claim")
    assert [handler.name for handler in job.trace.handlers()] == ["_release"]
    assert statek_queue.ready() == 1
""",
        setup=CLAIM,
    )
    result.assert_outcomes(passed=1)


LEFT_OVER = """\
def test_it(statek_runtime, statek_llm):
    statek_llm.script(worker=[code("exit(1)"), code("exit(2)")])
    statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
"""


def test_replies_that_nobody_asked_for_fail_the_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, LEFT_OVER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*reply 2 of 'worker'*"])
    result.stdout.no_fnmatch_line("test_it.py:[0-9]*")


def test_replies_left_over_by_a_test_that_failed_are_not_mentioned(pytester: pytest.Pytester) -> None:
    result = run(pytester, LEFT_OVER + "    assert 1 == 2\n")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*reply 2*")


def test_a_script_that_runs_out_points_at_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
def test_it(statek_runtime, statek_llm):
    statek_llm.script(worker=[code("x = 1")])
    statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [">*statek_runtime.run()", "E *ScriptExhausted: job 'job-1'*", "test_it.py:11: *"]
    )
    result.stdout.no_fnmatch_line("*statek_sim/*.py*")


BROKEN = """\
def broken(request):
    raise KeyError("oops")

def test_it(statek_runtime, statek_llm):
    statek_llm.use(FunctionLLM(broken))
    job = statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
    assert {claim}
"""


@pytest.mark.parametrize("claim", ["job.stop_reason == 'exit'", "job.status.name == 'DONE'"])
def test_a_bug_in_a_test_double_fails_the_test_and_keeps_its_traceback(
    pytester: pytest.Pytester, claim: str
) -> None:
    result = run(pytester, BROKEN.format(claim=claim))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*raise KeyError(*",
            "E *KeyError: 'oops'",
            ">*statek_runtime.run()",
            "E *ProviderBug: FunctionLLM raised KeyError*",
        ]
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            "statek_llm.script(guide='exit(1)')",
            "*'guide': expected a list of replies, got 'exit(1)'; write guide=*",
        ),
        ("statek_llm.script(guide=code('exit(1)'))", "*'guide': expected a list of replies, got Reply*"),
        ("statek_llm.script('exit(1)')", "*a script: expected a list of replies, got 'exit(1)'"),
        ("statek_llm.script({'guide': 'exit(1)'})", "*'guide': expected a list of replies, got 'exit(1)'"),
        ("statek_llm.script()", "*a script needs replies*"),
        ("statek_llm.use(print)", "*wrap a callable in FunctionLLM*"),
        (
            "[statek_runtime.create_job(Agent('worker'), name='same') for _ in 'ab']",
            "*'same' already exists*",
        ),
    ],
)
def test_a_wrong_call_is_told_where_it_stands(pytester: pytest.Pytester, call: str, error: str) -> None:
    result = run(pytester, f"def test_it(statek_llm, statek_runtime):\n    {call}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">*{call.replace('[', '[[]')}", f"E *BadInput: {error}", "test_it.py:*"])
    result.stdout.no_fnmatch_line("*statek_sim/*.py:*")


TALKS = """\
def test_it(statek_runtime, statek_llm):
    statek_llm.script({script})
    for name in {names}:
        statek_runtime.create_job(Agent("worker"), name=name, message="how are you?")
    statek_runtime.run()
    assert {claim}
"""


def test_a_failing_test_shows_the_conversation(pytester: pytest.Pytester) -> None:
    result = run(pytester, TALKS.format(script='worker=[code("exit(7)")]', names=["main"], claim=False))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*- STATEK conversation -*", "*user *how are you?", "*assistant *exit(7)", "*exit *7"]
    )


def test_the_conversation_of_several_jobs_names_them(pytester: pytest.Pytester) -> None:
    script = 'worker=[code("exit(1)"), code("exit(2)")]'
    result = run(pytester, TALKS.format(script=script, names=["one", "two"], claim=False))
    result.stdout.fnmatch_lines(["*one *assistant *exit(1)", "*two *assistant *exit(2)"])


def test_a_long_conversation_shows_its_start_and_its_end(pytester: pytest.Pytester) -> None:
    source = TALKS.format(script='[code("print(1)").forever()]', names=["main"], claim=False)
    result = run(
        pytester, "@pytest.mark.statek(limits={'max_turns': 60, 'max_token_usage': None})\n" + source
    )
    lines = result.outlines
    start = next(place for place, line in enumerate(lines) if "STATEK conversation" in line)
    end = next(
        place for place, line in enumerate(lines) if "short test summary" in line or "1 failed" in line
    )
    assert 45 <= end - start <= 55
    result.stdout.fnmatch_lines(["*how are you?", "  ... * more lines ...", "*stopped *max_turns*"])


def test_the_conversation_of_a_test_that_fails_in_its_fixtures_is_shown_once(
    pytester: pytest.Pytester,
) -> None:
    setup = """\
@pytest.fixture
def broken(statek_runtime):
    yield
    assert False

"""
    source = TALKS.format(script='worker=[code("exit(7)")]', names=["main"], claim=False)
    result = run(pytester, source.replace("(statek_runtime", "(broken, statek_runtime"), setup=setup)
    result.assert_outcomes(failed=1, errors=1)
    assert result.stdout.str().count("STATEK conversation") == 1


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_replies_left_over_come_with_the_conversation(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(pytester, LEFT_OVER, *workers)
    result.stdout.fnmatch_lines(["*reply 2 of 'worker'*", "*- STATEK conversation -*", "*exit(1)"])


def test_a_test_that_passes_or_in_which_nobody_spoke_shows_no_conversation(pytester: pytest.Pytester) -> None:
    passes = TALKS.format(script='worker=[code("exit(7)")]', names=["main"], claim=True)
    result = run(pytester, passes + "\ndef test_silent(statek_runtime):\n    assert False\n", "-rA")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*STATEK conversation*")


def test_a_run_without_script_says_how_to_give_one(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
def test_it(statek_runtime):
    statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
""",
    )
    result.stdout.fnmatch_lines(["*the LLM has no script*statek_llm.script(worker=[[]...[]])*"])


def test_a_second_script_goes_on_where_the_first_ended(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
def test_it(statek_runtime, statek_llm):
    statek_llm.script(worker=[code("exit(1)")])
    job = statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
    statek_llm.script([code("exit(2)")])
    job.push_user_message("again")
    statek_runtime.run()
    assert (job.py_env.exit_status, len(statek_llm.requests)) == (2, 2)
""",
    )
    result.assert_outcomes(passed=1)


def test_the_marker_sets_profile_preset_limits_and_seed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
@pytest.mark.statek(profile="1.2", preset="batch", limits={"max_turns": 2, "max_exceptions": None}, seed=7)
def test_it(statek_runtime, statek_llm):
    assert statek_runtime.profile.name == "1.2"
    assert statek_runtime.trace.header["seed"] == 7
    statek_llm.script([code("x = 1"), code("x = 2"), code("x = 3")])
    job = statek_runtime.create_job(Agent("worker"))
    statek_runtime.run()
    assert (job.stop_reason, job.llm_calls) == ("max_turns", 3)
""",
    )
    result.assert_outcomes(passed=1)


def test_the_nearest_marker_wins_argument_by_argument(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
pytestmark = pytest.mark.statek(profile="1.4", seed=5)

@pytest.mark.statek(profile="1.2")
def test_it(statek_runtime):
    assert (statek_runtime.profile.name, statek_runtime.trace.header["seed"]) == ("1.2", 5)
""",
    )
    result.assert_outcomes(passed=1)


def test_options_are_the_defaults_of_what_no_marker_says(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
def test_it(statek_runtime):
    assert (statek_runtime.profile.name, statek_runtime.trace.header["seed"]) == ("1.4", 9)
    assert statek_runtime.settings.max_turns == 3
""",
        "--statek-profile=1.4",
        "--statek-seed=9",
        f"--statek-preset={pytester.makefile('.env', three='STATEK_MAX_TURNS=3').name}",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("profil='docs'", "unknown argument 'profil'; *Did you mean 'profile'?"),
        ("'docs'", "expected keyword arguments, such as profile=..., got 'docs'"),
        ("profile='doc'", "profile 'doc' is unknown; *Did you mean 'docs'?"),
        ("preset='locl'", "preset 'locl': no such file*Did you mean 'local'?"),
        ("limits={'max_turn': 1}", "unknown limit 'max_turn'; *Did you mean 'max_turns'?"),
        ("limits={'max_turns': -1}", "max_turns=-1: expected a whole number*"),
        ("limits=3", "limits: expected a mapping, got 3"),
        ("seed='x'", "seed='x': expected a whole number"),
        ("items='abc'", "items='abc': expected a list of ids*"),
        (
            "items=[{'id': 'a', 'state': 'DONE'}]",
            "unknown key of an item 'state'; *Did you mean 'status'?",
        ),
        ("items=[{'status': 'DONE'}]", "id of an item=None: expected a string"),
        ("items=['a', 'a']", "work item 'a' already exists"),
        ("items=[{'id': 'a', 'status': 'LOST'}]", "status of an item='LOST': expected 'READY' or *"),
        ("wall_clock='frozen'", "wall_clock='frozen': expected 'virtual' or 'real'"),
        ("allow_network=1", "allow_network=1: expected True or False"),
    ],
)
def test_a_wrong_marker_is_told_in_one_line(pytester: pytest.Pytester, arguments: str, error: str) -> None:
    result = run(pytester, f"@pytest.mark.statek({arguments})\ndef test_it(statek_runtime):\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"test_it.py::test_it: @pytest.mark.statek: {error}"])
    result.stdout.no_fnmatch_line("*pytest_statek*.py*")
    result.stdout.no_fnmatch_line("*another exception*")


def test_the_queue_holds_the_marked_items_and_its_changes_are_traced(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
@pytest.mark.statek(items=["a", {"id": "b", "status": "CLAIMED", "owner": "w-2"}])
def test_it(statek_queue, statek_runtime):
    assert [item.id for item in statek_queue.claimed()] == ["b"]
    statek_queue.add(WorkItem("c"))
    statek_queue.claim_next(QueueOwner("w-1"))
    assert [(e.subject, e.change) for e in statek_runtime.trace.events] == [("a", "CLAIMED by w-1")]
""",
    )
    result.assert_outcomes(passed=1)


CONNECTS = """\
def test_it(statek_runtime):
    with pytest.raises({error}):
        socket.create_connection(("192.0.2.1", 9), timeout=0.01)
"""

HIDES = """\
def test_it(statek_llm):
    try:
        socket.create_connection(("192.0.2.1", 9), timeout=0.01)
    except Exception:
        pass
"""


def test_a_connection_that_the_code_hides_fails_the_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, HIDES)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a real network connection to 192.0.2.1 port 9 was refused*"])


@pytest.mark.parametrize(
    ("marker", "args"),
    [("allow_network=True", ()), ("", ("-ostatek_allow_network=true",))],
    ids=["marker", "option"],
)
def test_the_network_can_be_allowed(pytester: pytest.Pytester, marker: str, args: tuple[str, ...]) -> None:
    result = run(pytester, f"@pytest.mark.statek({marker})\n" + CONNECTS.format(error="OSError"), *args)
    result.assert_outcomes(passed=1)


def test_the_network_is_open_again_after_a_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, HIDES + CONNECTS.format(error="OSError").replace("test_it(statek_runtime)", "test_2()")
    )
    result.assert_outcomes(passed=1, failed=1)


def test_wall_clocks_follow_the_virtual_clock(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
def test_it(statek_clock):
    assert datetime.datetime.now() == statek_clock.wall()
    statek_clock.advance(3600)
    assert datetime.datetime.now() == statek_clock.wall()
    assert datetime.date.today() == statek_clock.wall().date()
""",
    )
    result.assert_outcomes(passed=1)


def test_the_wall_clock_stays_real_where_the_marker_says_so(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """\
BEFORE = time.time()

@pytest.mark.statek(wall_clock="real")
def test_it(statek_clock):
    assert time.time() >= BEFORE

def test_after(statek_clock):
    pass

def test_without():
    assert time.time() >= BEFORE
""",
    )
    result.assert_outcomes(passed=3)


def test_a_conftest_brings_its_own_tokenizer(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""\
class OnePerCharacter:
    def count(self, text):
        return len(text)

def pytest_statek_tokenizers(registry):
    registry.register_tokenizer("house-model", "characters", OnePerCharacter())
""")
    result = run(
        pytester,
        """\
@pytest.mark.parametrize("number", [1, 2])
def test_it(statek_runtime, statek_llm, number):
    statek_llm.script([code("exit(1)")])
    statek_runtime.create_job(Agent("worker", model="house-model"))
    statek_runtime.run()
    assert statek_runtime.usage().tokenizer == "characters"
""",
    )
    result.assert_outcomes(passed=2)


def test_fixtures_work_under_xdist(pytester: pytest.Pytester) -> None:
    run(pytester, LEFT_OVER, "-n", "2").assert_outcomes(failed=1)


def test_time_and_datetime_in_a_users_tool_are_virtual(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time
        from datetime import datetime

        from statek_sim import Agent, tool, code

        SEEN = []

        @tool
        def look(**kwargs):
            SEEN.append((time.time(), datetime.now()))

        def test_clocks(statek_runtime, statek_llm):
            statek_llm.script(worker=[code("look()"), code("look()").after(60), code("exit('ok')")])
            statek_runtime.create_job(Agent("worker", tools=[look]))
            statek_runtime.run()
            (first, second) = SEEN
            assert second[0] - first[0] == 60
            assert (second[1] - first[1]).total_seconds() == 60
        """
    )
    pytester.runpytest("-q").assert_outcomes(passed=1)


HIDING = """\
def careful(runtime):
    try:
        runtime.run()
    except Exception:
        pass
"""
ASKS_TWICE = """\
def test_it(statek_runtime, statek_llm):
    statek_llm.script(worker=[code("x = 1")])
    statek_runtime.create_job(Agent("worker"))
    {work}
"""


def test_a_request_without_a_reply_fails_the_test_though_the_code_hides_it(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    (tmp_path / "application.py").write_text(HIDING)
    pytester.syspathinsert(tmp_path)
    result = run(
        pytester, "import application\n" + ASKS_TWICE.format(work="application.careful(statek_runtime)")
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*a request had no reply, but *application.py caught the error: ScriptExhausted: job 'job-1'*",
            "*pytest.raises*",
        ]
    )


def test_a_request_without_a_reply_that_the_test_expects_is_no_failure(pytester: pytest.Pytester) -> None:
    work = "with pytest.raises(ScriptExhausted):\n        statek_runtime.run()"
    source = "import pytest\nfrom statek_sim.errors import ScriptExhausted\n" + ASKS_TWICE.format(work=work)
    run(pytester, source).assert_outcomes(passed=1)


def test_escape_sequences_of_model_code_do_not_work_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from statek_sim import Agent

        def test_it(statek_runtime, statek_llm):
            statek_llm.script(worker=["print('\\x1b[2J gone')\\nexit('\\x1b]0;title\\x07')"])
            statek_runtime.create_job(Agent("worker"))
            statek_runtime.run()
            assert False
        """
    )
    result = pytester.runpytest_subprocess("-q")
    section = result.stdout.str().partition("STATEK conversation")[2]
    assert "\\x1b[2J gone" in section
    assert "\x1b" not in section
