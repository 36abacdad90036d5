from __future__ import annotations

import pytest

from statek_sim import Agent, DialogAgent, Runtime, ScriptedLLM, code
from statek_sim.runtime.agents.dialog import chat_responses
from statek_sim.runtime.state.pyenv import Error, ErrorKind
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import ConsoleLine, DifficultyRaised, Reactivated
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, idle_runtime, run_one


def test_a_job_introduces_itself() -> None:
    assert repr(idle_runtime().create_job(Agent("worker"))) == "Job('job-1', 'worker', READY)"


def test_a_job_is_born_at_the_virtual_wall_time() -> None:
    runtime = idle_runtime()
    runtime.clock.advance(60)
    assert runtime.create_job(Agent("worker")).created_at == runtime.clock.wall()


def test_errors_on_the_console_are_kept_by_entry_and_only_execution_counts() -> None:
    job = run_one("x = 1", "exit(1)")
    job.console_append("fine")
    job.console_append("E: one", ErrorKind.EXECUTION)
    job.console_append("H: two", ErrorKind.HARNESS)
    assert {index - 1: error for index, error in job.py_env.exceptions.items()} == {
        1: Error(ErrorKind.EXECUTION, "E: one"),
        2: Error(ErrorKind.HARNESS, "H: two"),
    }
    assert job.exception_count == 1


def test_up_to_1_2_6_errors_are_bare_texts_by_the_position_of_the_newest_item_and_all_count() -> None:
    job = run_one("print('one')", "print('two')", "exit(1)", profile="1.2.5")
    job.console_append("E: one", ErrorKind.EXECUTION)
    job.console_append("H: two", ErrorKind.HARNESS)
    assert job.py_env.exceptions == {2: "H: two"}
    assert job.exception_count == 1


@table_test(
    ("text", "shown"),
    [
        ("<X object at 0x7f00aa>", "<X object at 0x...>"),
        ("<X at 0xdead>, <Y at 0xbeef>", "<X at 0x...>, <Y at 0x...>"),
        ("look at 0 and 0x12", "look at 0 and 0x12"),
        ("play at 0xylophone, at 0x12, at 0x...", "play at 0xylophone, at 0x12, at 0x..."),
        ("<weakref at 0x7f5a12345678; to 'X'>", "<weakref at 0x...; to 'X'>"),
    ],
)
def test_memory_addresses_do_not_reach_the_console(text: str, shown: str) -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.console_append(text)
    assert job.py_env.console == [shown]
    assert job.trace.of_type(ConsoleLine) == [ConsoleLine(0.0, job.id, 0, shown, None)]


def test_a_message_restarts_a_done_job_with_a_placeholder_turn() -> None:
    job = run_one("exit('ok')")
    assert job.push_user_message("more")
    assert (job.status, job.py_env.exit_status, job.stop_reason) == (JobStatus.STARTED, None, None)
    assert (job.num_completions, job.num_turns, job.last_response) == (1, 2, None)
    assert job.trace.of_type(Reactivated) == [Reactivated(0.0, job.id, "message", 1)]


def test_a_message_to_a_working_job_restarts_nothing() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    assert not job.push_user_message("hello")
    assert (job.status, job.num_completions) == (JobStatus.READY, None)


@pytest.mark.parametrize(
    ("context", "shown"),
    [({}, "{'n': 1}"), ({"_message_adapter": lambda message: f"n is {message['n']}"}, "n is 1")],
)
def test_an_object_becomes_text_through_the_agents_adapter(context: dict[str, object], shown: str) -> None:
    job = idle_runtime().create_job(Agent("worker", context=context), message={"n": 1})
    assert job.get_chat_history() == [{"role": "user", "content": shown}]


def test_panic_raises_the_difficulty_up_to_the_highest() -> None:
    job = idle_runtime().create_job(Agent("worker", metadata={"DEFAULT_DIFFICULTY": "l"}))
    assert job.difficulty == "LOW"
    job.panic()
    job.panic()
    assert [event.difficulty for event in job.trace.of_type(DifficultyRaised)] == ["MEDIUM", "HIGH"]
    with pytest.raises(RuntimeError, match=r"^Job is already at high difficulty: "):
        job.panic()


@pytest.mark.parametrize(("profile", "extended"), [("1.2", False), ("1.4", True)])
def test_from_1_4_1_panic_extends_the_token_limit_by_the_usage_so_far(profile: str, extended: bool) -> None:
    job = run_one("exit(1)", profile=profile)
    job.panic()
    assert job.difficulty_token_extension == (job.approx_token_usage if extended else 0)


def test_what_a_dialog_agent_said_is_told_in_order() -> None:
    runtime = Runtime(ScriptedLLM([code("x = 1"), "exit(1)"]), harness=UNLIMITED)
    agent = DialogAgent(lambda body, media=None: None)
    job = runtime.create_job(agent, message="hi")
    runtime.run()
    assert list(chat_responses(job)) == []
    assert job.dialog_length() == 1


def test_a_job_that_ends_tells_whoever_listens_once_per_end() -> None:
    told: list[str] = []
    runtime = idle_runtime(script=["exit(1)", "exit(2)"])
    job = runtime.create_job(Agent("worker"))
    job.signal.listen("me", told.append)
    runtime.run()
    job.push_user_message("more")
    runtime.run()
    assert told == ["me", "me"]


def test_jobs_have_no_attributes_of_the_moment() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    with pytest.raises(AttributeError, match="note"):
        job.note = "x"  # type: ignore[attr-defined]
