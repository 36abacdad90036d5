"""The lab that test fixtures are made of."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from statek_sim.errors import (
    BadInput,
    BadSetting,
    ProviderBug,
    ScriptExhausted,
    UnmatchedRequest,
    UnusedReplies,
)
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import code
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.runtime.agents.agent import Agent
from statek_sim.scriptable import ScriptableLLM
from statek_sim.server.llm import FakeLLM
from statek_sim.testing import Lab, LabSettings
from statek_sim.trace import WorldChanged
from statek_sim.world.queue import ItemStatus, QueueOwner, WorkItem
from tests.says import line_with
from tests.tables import table_test


def test_a_lab_runs_a_job_on_a_script_given_late() -> None:
    lab = Lab(LabSettings())
    job = lab.runtime.create_job(Agent("worker"))
    lab.llm.script(worker=[code("exit(1)")])
    lab.runtime.run()
    assert (job.stop_reason, len(lab.llm.requests)) == ("exit", 1)


def test_a_script_may_be_for_everybody_or_name_a_job() -> None:
    lab = Lab(LabSettings())
    jobs = [lab.runtime.create_job(Agent(role)) for role in ("one", "two")]
    lab.llm.script({"job:job-2": ["exit(2)"], "one": ["exit(1)"]})
    lab.runtime.run()
    assert [job.py_env.exit_status for job in jobs] == [1, 2]


def test_a_script_by_role_and_for_everybody_at_once_is_refused() -> None:
    with pytest.raises(BadInput, match=line_with("script", "role", "not both")):
        ScriptableLLM().script([code("exit(1)")], worker=[code("exit(1)")])


def test_an_empty_script_is_refused() -> None:
    with pytest.raises(
        BadInput,
        match=line_with("script needs replies", "script(worker=[...])"),
    ):
        ScriptableLLM().script()


@table_test("replies", ["exit(1)", b"exit(1)", code("exit(1)"), {"exit(1)": 1}])
def test_replies_that_are_no_list_are_refused(replies: Any) -> None:
    with pytest.raises(BadInput, match=line_with("script 'guide'", "list", "guide=[...]")):
        ScriptableLLM().script(guide=replies)


def test_a_text_is_no_script_for_everybody() -> None:
    with pytest.raises(BadInput, match=line_with("script", "list", "'exit(1)'")):
        ScriptableLLM().script("exit(1)")


@table_test("script", [code("x = 1"), {"": code("x = 1")}])
def test_a_single_reply_is_no_script(script: Any) -> None:
    message = (
        r"^a script: expected a list of replies, got Reply\(\.\.\.\); put it in a list: \[text\('a'\)\]$"
    )
    for play in (ScriptableLLM().script, FakeLLM().play):
        with pytest.raises(BadInput, match=message):
            play(script)


def test_replies_may_come_from_a_generator() -> None:
    lab = Lab(LabSettings())
    jobs = [lab.runtime.create_job(Agent("worker")) for _ in range(2)]
    lab.llm.script(worker=(f"exit({number})" for number in (1, 2)))
    lab.runtime.run()
    assert [job.py_env.exit_status for job in jobs] == [1, 2]


def test_what_is_no_provider_is_refused() -> None:
    answer: Any = print
    with pytest.raises(BadInput, match=line_with("no method `complete`", "FunctionLLM")):
        ScriptableLLM().use(answer)


def test_a_second_script_waits_for_the_end_of_the_first() -> None:
    llm = ScriptableLLM()
    llm.script(worker=[code("exit(1)")])
    with pytest.raises(UnusedReplies, match="exit"):
        llm.script(worker=[code("exit(2)")])


def test_a_request_without_script_says_how_to_give_one() -> None:
    lab = Lab(LabSettings())
    lab.runtime.create_job(Agent("night-worker"))
    with pytest.raises(
        UnmatchedRequest, match=r"'night-worker' .* statek_llm\.script\({'night-worker': \[\.\.\.\]}\)$"
    ):
        lab.runtime.run()


def test_any_provider_can_answer() -> None:
    lab = Lab(LabSettings())
    lab.llm.use(FunctionLLM(lambda request: f"exit({request.turn})"))
    job = lab.runtime.create_job(Agent("worker"))
    lab.runtime.run()
    lab.llm.check_finished()
    assert job.py_env.exit_status == 1


def test_an_error_of_the_script_shows_no_frames_of_the_runtime() -> None:
    lab = Lab(LabSettings())
    lab.llm.script(worker=[code("x = 1")])
    lab.runtime.create_job(Agent("worker"))
    with pytest.raises(ScriptExhausted) as caught:
        lab.runtime.run()
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2


def test_a_wrong_call_shows_no_frames_of_the_runtime() -> None:
    lab = Lab(LabSettings())
    lab.runtime.create_job(Agent("worker"), name="same")
    with pytest.raises(BadInput, match=r"^job 'same' already exists") as caught:
        lab.runtime.create_job(Agent("worker"), name="same")
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_a_bug_of_a_provider_is_the_cause_of_the_error() -> None:
    def broken(request: ChatRequest) -> str:
        raise KeyError(request.job_id)

    lab = Lab(LabSettings())
    lab.llm.use(FunctionLLM(broken))
    lab.runtime.create_job(Agent("worker"))
    with pytest.raises(ProviderBug, match=r"^FunctionLLM raised KeyError: 'job-1'") as caught:
        lab.runtime.run()
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
    assert caught.value.__cause__ is not None
    assert traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].name == "broken"


def test_limits_replace_those_of_the_preset_one_by_one() -> None:
    lab = Lab(LabSettings(preset="batch", limits={"max_turns": 1, "max_exceptions": None}))
    lab.llm.script([code("x = 1").forever()])
    job = lab.runtime.create_job(Agent("worker"))
    lab.runtime.run()
    assert (job.stop_reason, job.llm_calls) == ("max_turns", 2)


def test_a_limit_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"^max_turns=-1: expected a whole number"):
        Lab(LabSettings(limits={"max_turns": -1}))


def test_the_queue_holds_the_items_and_its_changes_are_traced() -> None:
    lab = Lab(LabSettings(items=(WorkItem("a"), WorkItem("b", ItemStatus.CLAIMED, "w-2"))))
    lab.queue.claim_next(QueueOwner("w-1"))
    assert lab.runtime.trace.events == [WorldChanged(0.0, "", "a", "CLAIMED by w-1")]


def test_two_labs_do_not_share_items() -> None:
    settings = LabSettings(items=(WorkItem("a"),))
    Lab(settings).queue.claim_next(QueueOwner("w-1"))
    assert Lab(settings).queue.ready() == 1
