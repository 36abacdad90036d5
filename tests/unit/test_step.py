from __future__ import annotations

import pytest

from statek_sim import Agent, LLM_Harness, Runtime, ScriptedLLM, code, tool, tool_call
from statek_sim.providers.script import ScriptedCall, tool_calls
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import JobStopped, JobTrace, StatusChanged
from tests.unit.runtime_samples import Gate, idle_runtime, run_one


def statuses(job_trace: JobTrace) -> list[str]:
    return [event.new for event in job_trace.of_type(StatusChanged)]


def test_a_job_without_warmup_goes_straight_to_its_model() -> None:
    job = run_one("exit(1)")
    assert statuses(job.trace) == ["STARTED", "DONE"]
    assert (job.steps, job.llm_calls) == (2, 1)


def test_each_warmup_block_is_a_step_and_the_last_one_asks_the_model() -> None:
    runtime = idle_runtime(script=[code("exit(a + b)")])
    job = runtime.create_job(Agent("worker"), warmup_code=["a = 1", "b = 2"])
    runtime.run()
    assert statuses(job.trace) == ["WARMING_UP", "STARTED", "DONE"]
    assert (job.steps, job.py_env.exit_status) == (3, 3)


def test_an_exit_in_warmup_ends_the_job_before_any_request() -> None:
    runtime = idle_runtime()
    job = runtime.create_job(Agent("worker"), warmup_code=["exit('done')", "x = 1"])
    runtime.run()
    assert (job.py_env.exit_status, job.stop_reason, job.llm_calls) == ("done", "exit", 0)


def test_a_failing_warmup_ends_the_job_with_the_error_on_its_definition() -> None:
    runtime = idle_runtime()
    job = runtime.create_job(Agent("worker"), warmup_code="1/0")
    runtime.run()
    assert (job.status, job.stop_reason, job.error) == (JobStatus.DONE, "warmup", None)
    assert [error.error_message for error in job.job_def.get_errors()] == ["division by zero"]


def test_a_wait_in_warmup_keeps_the_status() -> None:
    gate = Gate()
    runtime = idle_runtime()
    job = runtime.create_job(Agent("worker", tools=[gate.tool]), warmup_code="gate()\nexit(1)")
    runtime.run()
    assert statuses(job.trace) == ["WARMING_UP"]
    runtime.at(1, gate.open)
    runtime.run()
    assert statuses(job.trace) == ["WARMING_UP", "DONE"]


@pytest.mark.parametrize("style", [None, "CONSOLE", "MARKDOWN"])
def test_a_reply_without_code_is_an_error_on_the_console(style: str | None) -> None:
    runtime = idle_runtime(script=[code("# thinking"), code("exit(1)")])
    job = runtime.create_job(Agent("worker"), chat_style=style)
    runtime.run()
    assert job.py_env.console[0] == "Error: no code submitted."
    assert job.exception_count == 1


def test_tool_calls_run_before_the_code_of_their_reply() -> None:
    order: list[str] = []

    @tool
    def note(text: str, **kwargs: object) -> None:
        """Note a text."""
        order.append(text)

    reply = tool_calls(ScriptedCall("note", {"text": "call"}), code="note('code')\nexit(1)")
    run_one(reply, tools=(note,))
    assert order == ["call", "code"]


def test_an_unknown_tool_is_an_error_of_its_call() -> None:
    job = run_one(tool_call("nothing"), "exit(1)")
    assert job.exception_count == 1
    assert job.get_chat_history()[1]["content"] == "> NameError: tool 'nothing' not found"


def test_the_harness_asks_before_a_step_and_the_reply_is_not_executed() -> None:
    runtime = Runtime(ScriptedLLM([code("x = 1"), code("exit(1)")]), harness=LLM_Harness(1, None, None, None))
    job = runtime.create_job(Agent("worker"))
    runtime.run()
    assert (job.stop_reason, job.llm_calls, job.py_env.exit_status) == (
        "max_turns",
        2,
        "Error: Maximum number of turns exceeded: 2/1",
    )
    assert job.trace.of_type(JobStopped)[0].detail == "Maximum number of turns exceeded: 2/1"
