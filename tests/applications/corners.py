"""Tests of a small application that must pass on both backends: what surrounds a run rather than what it does.

No test module of this project: it is copied into projects of its own, and run there with `--statek-backend`.
"""
# mypy: ignore-errors

import asyncio
import os
import socket
import time
from datetime import datetime
from pathlib import Path

import dbzero as db0
import pytest
from statek import create_new_job, get_all, get_current_job, get_llm_harness, statek_print, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.exceptions import FutureError
from statek.executors.job import Job, JobStatus
from statek.executors.utils import run_agentic_loop
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.settings import StatekSettings
from statek.task import delegate_task
from statek.testing import statek_context

from statek_sim import fault, text, tool_call

SENT = []


@db0.memo(singleton=True)
class Notes:
    def __init__(self):
        self.lines = []
        self.at = None


@db0.memo
class Door(FutureResult):
    def __init__(self):
        super().__init__(deps=None, state_num=0)


def is_open(future) -> bool:
    return "open" in list(Notes().lines)


def what_is_behind(future) -> str:
    if not is_open(future):
        raise FutureError(future)
    return "a goat"


@temporal(complement=what_is_behind, condition=is_open)
@tool
def knock(**kwargs) -> FutureResult:
    """Wait for the door."""
    return Door()


@tool
def note(line: str, **kwargs):
    """Write a line down."""
    Notes().lines.append(line)
    Notes().at = datetime.now()


@tool
def nap(seconds: float, **kwargs):
    """Sleep."""
    time.sleep(seconds)


@tool
async def slow_nap(seconds: float, **kwargs):
    """Sleep without blocking."""
    await asyncio.sleep(seconds)
    return "rested"


@tool
def dial(**kwargs):
    """Try a real connection."""
    socket.create_connection(("192.0.2.1", 80), timeout=0.1)


@tool
def delegate(**kwargs):
    """Make a job of the same agent."""
    job = get_current_job()
    return str(delegate_task(job.agent, parent_job=job) is not None)


@tool
def show(value, **kwargs):
    """Print a value as agents see it."""
    statek_print(value)


def send(body, media=None):
    """Talk to the user."""
    SENT.append(body)


def create(*tools, role="worker", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You work."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def test_wall_clocks_show_virtual_time(statek_app):
    statek_app.script(worker=["note('now')\nexit(1)"])
    statek_app.at(3600, lambda: statek_app.create_job(create(note)))
    statek_app.run()
    assert statek_app.now == 3600
    assert Notes().at == datetime(2026, 1, 1, 10)
    assert datetime.now() == datetime(2026, 1, 1, 10)


def test_naps_take_no_real_time(statek_app):
    statek_app.script(worker=["nap(3600.0)", "print(slow_nap(3600.0))", "exit(1)"])
    job = statek_app.create_job(create(nap, slow_nap))
    statek_app.run()
    assert statek_app.now == 7200
    assert statek_app.job(job).console[1] == "rested"


def test_faults_of_the_provider_are_tried_again_in_virtual_time(statek_app):
    statek_app.script(worker=[fault(503), fault(429), "exit(1)"])
    job = statek_app.create_job(create())
    statek_app.run()
    assert statek_app.job(job).llm_calls == 3
    assert statek_app.job(job).turns == 1
    assert statek_app.now == 18


def test_a_fault_that_is_final_ends_the_job_as_a_crash(statek_app):
    statek_app.script(worker=[fault(401)])
    job = statek_app.create_job(create())
    statek_app.run()
    assert statek_app.job(job).stop == "crash"
    assert "401" in statek_app.job(job).error


def test_the_environment_says_nothing(statek_app):
    assert StatekSettings().max_turns == 5
    assert get_llm_harness().max_turns == 5
    assert os.environ.get("STATEK_MAX_TURNS") in (None, "1")


@pytest.mark.statek(limits={"max_turns": None, "max_token_usage": None})
def test_limits_may_be_lifted(statek_app):
    assert get_llm_harness().max_turns is None
    statek_app.script(worker=["x = 1"] * 20 + ["exit(1)"])
    job = statek_app.create_job(create())
    statek_app.run()
    assert statek_app.job(job).llm_calls == 21


def test_the_applications_own_jobs_are_seen(statek_app):
    job = create_new_job(create(), {"answer": 42})
    statek_app.script(worker=["exit(answer)"])
    statek_app.run()
    assert [known.name for known in statek_app.jobs] == ["job-1"]
    assert statek_app.job(job).exit == 42
    assert list(db0.find(Job, JobStatus.DONE)) == [job]


def test_a_name_is_given_once(statek_app):
    statek_app.create_job(create(), name="one")
    with pytest.raises(Exception, match=r"^job 'one' already exists; job names must be unique within a "):
        statek_app.create_job(create(), name="one")
    statek_app.script(worker=["exit(1)"])
    statek_app.run()


def test_tools_called_by_the_provider_are_told_like_those_called_by_code(statek_app):
    agent = create(note, LLM_TOOLS_SCOPE="APPLICATION +note")
    statek_app.script(worker=[tool_call("note", line="hello"), "exit(1)"])
    job = statek_app.create_job(agent)
    statek_app.run()
    assert list(Notes().lines) == ["hello"]
    assert [(use.name, use.arguments, use.result) for use in statek_app.job(job).tools] == [
        ("note", "line='hello'", "None")
    ]


def test_jobs_wait_and_go_on(statek_app):
    statek_app.script(worker=["behind = knock()\nexit(behind)"])
    job = statek_app.create_job(create(knock), name="waiter")
    assert statek_app.run().waiting == ("waiter",)
    assert statek_app.now == 0
    assert statek_app.run(until=30).waiting == ("waiter",)
    assert statek_app.now == 30
    statek_app.at(60, lambda: Notes().lines.append("open"))
    outcome = statek_app.run()
    assert (outcome.at, outcome.waiting, outcome.settled) == (60, (), True)
    assert statek_app.job(job).exit == "a goat"


def test_a_dialog_goes_on_with_the_next_message(statek_app):
    SENT.clear()
    agent = DialogAgent(send, role="host", _metadata={"MODEL": "openai/gpt-4o"})
    statek_app.script(host=[text("Hello."), text("Bye.")])
    job = statek_app.create_job(agent, message="Hi")
    statek_app.run()
    assert statek_app.job(job).stop == "final"
    job.push_user_message("I am off")
    statek_app.run()
    assert SENT == ["Hello.", "Bye."]
    assert (statek_app.job(job).completions, statek_app.job(job).status) == (1, "DONE")


def test_warmup_that_fails_is_told_apart_from_a_crash(statek_app):
    agent = create()
    agent.update_warmup_def("1/0")
    job = statek_app.create_job(agent)
    statek_app.run()
    assert statek_app.job(job).stop == "warmup"
    assert statek_app.job(job).error is None
    assert len(statek_app.job(job).definition_errors) == 1


def test_a_delegated_job_has_a_name_of_its_own(statek_app):
    statek_app.script(worker=["delegate()", "exit('child')", "exit('parent')"])
    statek_app.create_job(create(delegate), name="parent")
    statek_app.run()
    assert [(job.name, job.parent) for job in statek_app.jobs] == [("parent", None), ("job-1", "parent")]


def test_values_are_printed_as_agents_see_them(statek_app):
    statek_app.script(worker=["show([1, 'x'])\nexit(1)"])
    job = statek_app.create_job(create(show))
    statek_app.run()
    assert statek_app.job(job).console[0] == '[1,"x"]'


def test_a_context_is_set_for_a_tool_that_is_tested_by_itself(statek_app):
    agent = create()
    job = create_new_job(agent)
    assert get_current_job() is None
    with statek_context(job=job):
        assert get_current_job() == job
    statek_app.script(worker=["exit(1)"])
    statek_app.run()


def test_futures_of_tools_are_awaited_by_get_all(statek_app):
    statek_app.script(worker=["pair = [knock(), get_all.__class__]\nexit(1)", "exit(2)"])
    assert callable(get_all)
    job = statek_app.create_job(create(knock))
    statek_app.run()
    assert statek_app.job(job).exit == 2


@pytest.mark.parametrize("provider", ["OPENROUTER", "CLAUDEAI", "VERTEXAI"])
def test_agents_of_every_wire_format_are_answered(statek_app, provider):
    statek_app.script(worker=["x = 1", "exit(x)"])
    job = statek_app.create_job(create(PROVIDER=provider))
    statek_app.run()
    assert statek_app.job(job).exit == 1
    assert [message["role"] for message in statek_app.requests[1].messages][:2] == ["system", "assistant"]


PRESET = Path(__file__).with_name("markdown.env")
PRESET.write_text("STATEK_CHAT_STYLE=MARKDOWN\nSTATEK_MAX_TURNS=7\n")


@pytest.mark.statek(preset=PRESET)
def test_a_preset_sets_styles_and_limits(statek_app):
    assert get_llm_harness().max_turns == 7
    statek_app.script(worker=[text("Thinking."), "exit(1)"])
    job = statek_app.create_job(create())
    statek_app.run()
    assert statek_app.job(job).console == ("Error: no code submitted.", "None")
    assert statek_app.requests[0].chat_style == "MARKDOWN"


def test_a_script_that_runs_out_is_told_also_through_a_loop(statek_app):
    agent = create()
    statek_app.script(worker=["x = 1"])
    with pytest.raises(Exception, match="asked for one more reply") as caught:
        asyncio.run(run_agentic_loop(agent, None, lambda: len(statek_app.jobs) == 0, ["statek-test"]))
    assert type(caught.value).__name__ == "ScriptExhausted"


def test_an_agentic_loop_ends_when_nothing_is_left_to_do(statek_app):
    agent = create(note)
    agent.update_warmup_def("note('begun')")
    statek_app.script(worker=["exit(1)"] * 3)
    asyncio.run(
        run_agentic_loop(agent, agent.warmup_def.warmup_code, lambda: 3 - len(Notes().lines), ["statek-test"])
    )
    assert list(Notes().lines) == ["begun"] * 3
    assert [job.exit for job in statek_app.jobs] == [1, 1, 1]


def test_what_the_store_cannot_keep_is_refused(statek_app):
    with pytest.raises(AttributeError, match="Unsupported attribute type"):
        Notes().at = object()
    with pytest.raises(RuntimeError, match="Type unsupported by dbzero: object"):
        Notes().lines.append(object())


def test_after_a_test_its_surroundings_are_as_before():
    assert os.environ.get("OPENAI_API_URL") is None
    assert time.sleep.__module__ == "time"
    assert asyncio.sleep.__module__ == "asyncio.tasks"
    assert datetime.now() > datetime(2026, 1, 2)
    with pytest.raises(RuntimeError, match="dbzero not initialized"):
        Notes()


def test_a_dict_that_holds_itself_is_told_as_text(statek_app):
    statek_app.script(dan=["own = {'k': 1}", "own['own'] = own", "exit('kept')"])
    create_new_job(create(role="dan"))
    statek_app.run()
    (job,) = statek_app.jobs
    assert (job.exit, job.locals["own"]) == ("kept", "<Dict: RecursionError>")
