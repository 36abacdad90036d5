from __future__ import annotations

import pytest

from statek_sim import Agent, DialogAgent, FunctionLLM, LLM_Harness, Runtime, ScriptedLLM, code, fault, tool
from statek_sim.errors import (
    BadInput,
    ContractViolation,
    Livelock,
    ProviderBug,
    ScriptError,
    ScriptExhausted,
    UnmatchedRequest,
)
from statek_sim.providers import ChatRequest
from statek_sim.providers.script import Reply, ScriptedCall, timeout, tool_calls
from statek_sim.runtime.execution.model_name import BadModelName
from statek_sim.runtime.state.status import JobStatus
from tests.tables import table_test
from tests.unit.runtime_samples import idle_runtime, run_one


def refusing(error: Exception) -> FunctionLLM:
    def answer(request: ChatRequest) -> str:
        raise error

    return FunctionLLM(answer)


@table_test(
    "error", [ScriptError("no such page"), UnmatchedRequest("who"), ContractViolation("no"), BadInput("bad")]
)
def test_an_error_of_the_test_set_up_fails_the_run_not_the_job(error: Exception) -> None:
    runtime = Runtime(refusing(error))
    job = runtime.create_job(Agent("worker"))
    with pytest.raises(type(error), match=f"^{error}$"):
        runtime.run()
    assert (job.status, job.error, job.py_env.lines) == (JobStatus.STARTED, None, [])


def test_a_script_that_is_too_short_fails_the_run() -> None:
    runtime = idle_runtime(script=["x = 1"])
    runtime.create_job(Agent("worker"))
    with pytest.raises(
        ScriptExhausted, match=r"^job 'job-1' \(agent 'worker', turn 2, attempt 1\) asked for one more"
    ):
        runtime.run()


def test_any_other_error_of_a_provider_fails_the_run_and_not_the_job() -> None:
    runtime = Runtime(refusing(ZeroDivisionError("odd")))
    job = runtime.create_job(Agent("worker"))
    with pytest.raises(ProviderBug, match=r"^FunctionLLM raised ZeroDivisionError: odd; a failing provider"):
        runtime.run()
    assert job.error is None


def test_a_provider_that_returns_something_else_fails_the_run() -> None:
    class Wordy:
        def complete(self, request: ChatRequest) -> str:
            return "hello"

    runtime = Runtime(Wordy())  # type: ignore[arg-type]  # the mistake under test
    runtime.create_job(Agent("worker"))
    with pytest.raises(ProviderBug, match=r"^Wordy.complete returned 'hello', expected a RawReply$"):
        runtime.run()


def test_a_crash_is_shown_without_frames_of_this_machine() -> None:
    job = run_one(fault(400))
    (shown,) = job.py_env.console
    assert shown.startswith("Job job-1 failed with error: ")
    assert "Traceback (most recent call last):\n" in shown
    assert 'File "' not in shown


def test_a_stop_by_the_harness_sets_status_console_and_error() -> None:
    runtime = Runtime(ScriptedLLM([code("x = 1").forever()]), harness=LLM_Harness(0, None, None, None))
    job = runtime.create_job(Agent("worker"))
    runtime.run()
    message = "Maximum number of turns exceeded: 1/0"
    assert job.py_env.exit_status == f"Error: {message}"
    assert job.py_env.console == [f"LLM_HarnessError: {message}"]
    assert job.error is not None
    assert job.error.error_message == message
    assert job.exception_count == 0


def test_handlers_run_with_the_error_after_the_job_is_done() -> None:
    seen: list[tuple[object, str, JobStatus]] = []
    runtime = idle_runtime(script=[fault(400)])
    job = runtime.create_job(Agent("worker"))
    job.add_error_handler(
        lambda context, error=None: seen.append((context, type(error).__name__, job.status)), 7
    )
    runtime.run()
    assert seen == [(7, "ProviderHTTPError", JobStatus.DONE)]


def test_a_normal_end_runs_no_handler_and_keeps_it() -> None:
    runtime = idle_runtime(script=["exit('Error: mine')"])
    job = runtime.create_job(Agent("worker"))
    job.add_error_handler(lambda context, error=None: None, None)
    runtime.run()
    assert job.trace.handlers() == []
    assert len(job.error_handlers) == 1


def test_an_impossible_model_name_means_no_job() -> None:
    runtime = idle_runtime()
    with pytest.raises(
        BadModelName,
        match=r"^Duplicate MODEL metadata for difficulty low\nMODEL 'llama3\.1:8b': a ':' means difficulty labels; ",
    ):
        runtime.create_job(Agent("worker", model="llama3.1:8b"))
    assert runtime.jobs == []


def test_code_that_raises_what_nothing_catches_ends_its_job_and_no_other() -> None:
    script = {"job:bad": ["raise BaseException('out')"], "job:good": ["x = 1", "exit(1)"]}
    runtime = idle_runtime(script=script)
    bad, good = (runtime.create_job(Agent("worker"), name=name) for name in ("bad", "good"))
    runtime.run()
    assert (bad.stop_reason, good.stop_reason) == ("contained", "exit")
    assert bad.error is not None
    assert bad.error.error_message == (
        "model-written code raised BaseException: out. STATEK's worker does not catch it "
        "and would run the same reply again forever"
    )


@pytest.mark.parametrize(
    ("reply", "name"),
    [(fault(400), "httpx.HTTPStatusError: Client error '400 Bad Request'"), (timeout(), "httpx.ReadTimeout")],
)
def test_agents_read_about_the_client_that_statek_has(reply: Reply, name: str) -> None:
    job = run_one(*[reply] * 9)
    assert f"Traceback (most recent call last):\n{name}" in "\n".join(job.py_env.console)


def test_a_dialog_without_warmup_repeats_its_first_step_forever_in_1_2_5() -> None:
    runtime = idle_runtime("1.2.5", script=["never asked for"])
    job = runtime.create_job(DialogAgent(lambda body, media=None: None, "shop"))
    job.push_user_message("A table please.")
    told = "AttributeError: 'str' object has no attribute 'console_pos'"
    with pytest.raises(Livelock, match=f"^job 'job-1' repeats the same step forever: {told}$"):
        runtime.run()
    assert (job.status, job.error, job.llm_calls, job.steps) == (JobStatus.STARTED, None, 0, 26)


def test_a_harness_stop_that_cannot_be_recorded_leaves_the_job_running_in_1_2_5() -> None:
    def interrupt(body: str, media: str | None = None) -> None:
        job.push_user_message("Two chairs too.")

    reply = tool_calls(ScriptedCall("panic", {}), text="I check.")
    runtime = Runtime(ScriptedLLM([reply]), profile="1.2.5", harness=LLM_Harness(0, None, None, None))
    job = runtime.create_job(DialogAgent(interrupt, "shop", warmup="print('open')"))
    with pytest.raises(
        Livelock, match=r"'statek\.executors\.chat_log_item\.UserLogItem' object has no attribute"
    ):
        runtime.run()
    assert (job.status, job.py_env.exit_status) == (
        JobStatus.STARTED,
        "Error: Maximum number of turns exceeded: 1/0",
    )
    assert job.py_env.console[1] == "LLM_HarnessError: Maximum number of turns exceeded: 1/0"
    assert job.error is None


def test_a_message_that_arrives_while_the_last_code_runs_shows_up_as_a_crash_after_the_end_in_1_2_5() -> None:
    @tool
    def hear(**kwargs: object) -> None:
        job.push_user_message("Two chairs too.")

    runtime = idle_runtime("1.2.5")
    job = runtime.create_job(
        DialogAgent(lambda body, media=None: None, "shop", tools=[hear], warmup="hear()\nexit('ok')")
    )
    runtime.run()
    assert (job.status, job.stop_reason, job.py_env.exit_status, job.error) == (
        JobStatus.DONE,
        "exit",
        "ok",
        None,
    )
    assert "Job job-1 failed with error" in job.py_env.console[-1]
