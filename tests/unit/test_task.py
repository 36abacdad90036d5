from __future__ import annotations

import pytest

from statek_sim import Agent, DialogAgent, Runtime, ScriptedLLM, fault, text, tool
from statek_sim.errors import BadInput
from statek_sim.jobs import (
    FutureError,
    create_new_job,
    delegate_mute_dialog,
    delegate_mute_task,
    delegate_task,
    get_current_job,
    start_dialog,
)
from statek_sim.runtime.execution.runtime import active
from statek_sim.runtime.task import named_job, submit_new_job, submit_new_jobs_batch
from tests.unit.runtime_samples import UNLIMITED, idle_runtime

CHILD = Agent("child")


def send(body: str, media: str | None = None) -> None:
    """Deliver nowhere."""


def test_jobs_need_a_runtime_to_live_in() -> None:
    with pytest.raises(
        BadInput,
        match=r"^no runtime is active; create jobs with Runtime\.create_job, or inside `with active\(runtime\)`$",
    ):
        create_new_job(CHILD)


def test_an_active_runtime_takes_new_jobs_in() -> None:
    runtime = idle_runtime()
    with active(runtime):
        job = create_new_job(CHILD, {"x": 1})
        other = submit_new_job(CHILD, {"y": 2})
    assert runtime.jobs == [job, other]
    assert (job.py_env.local_state, other.py_env.local_state) == ({"x": 1}, {"y": 2})


def test_a_batch_makes_one_job_per_set_of_names() -> None:
    runtime = idle_runtime()
    with active(runtime):
        jobs = submit_new_jobs_batch(CHILD, [{"n": 1}, None, {"n": 3}])
    assert [job.py_env.local_state for job in jobs] == [{"n": 1}, {}, {"n": 3}]


def test_a_dialog_starts_with_its_message() -> None:
    runtime = idle_runtime()
    with active(runtime):
        job = start_dialog(DialogAgent(send), "hello")
    assert job.chat_log == ["hello"]


def test_a_tool_creates_jobs_in_the_runtime_of_the_job_that_called_it() -> None:
    @tool
    def spawn(**kwargs: object) -> None:
        """Start a child."""
        named_job(CHILD, parent_job=get_current_job(), name="kid")

    script = {"parent": ["spawn()\nexit(1)"], "child": ["exit(2)"]}
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED)
    parent = runtime.create_job(Agent("parent", tools=[spawn]))
    with active(idle_runtime()):
        runtime.run()
    assert runtime.job("kid").parent_job is parent
    assert runtime.job("kid").py_env.exit_status == 2


def test_a_delegated_task_is_a_future_of_exit_status_and_job() -> None:
    runtime = idle_runtime(script=["exit('fine')"])
    with active(runtime):
        future = delegate_task(CHILD)
        assert not future.check_condition()
        with pytest.raises(FutureError):
            _ = future.value
        runtime.run()
    assert future.value == ("fine", runtime.jobs[0])


def test_a_task_that_failed_looks_like_one_that_ended() -> None:
    runtime = idle_runtime(script=[fault(400)])
    with active(runtime):
        future = delegate_task(CHILD)
    runtime.run()
    assert future.value == (None, runtime.jobs[0])


def test_a_mute_task_ends_in_why_it_failed() -> None:
    runtime = idle_runtime(script=[fault(400)])
    with active(runtime):
        future = delegate_mute_task(CHILD)
    runtime.run()
    error = runtime.jobs[0].error
    assert error is not None
    assert future.value == error.error_message


def test_a_mute_dialog_ends_in_what_was_said() -> None:
    runtime = idle_runtime(script=[text("Hello."), text("Bye.")])
    with active(runtime):
        future = delegate_mute_dialog(DialogAgent(send, metadata={"CHAT_STYLE": "DIRECT"}), "hi")
    runtime.run()
    runtime.jobs[0].push_user_message("more")
    runtime.run()
    assert future.value == "Hello.\nBye."


def test_a_parent_waits_for_its_child_and_sees_its_exit_status() -> None:
    @tool
    def ask(**kwargs: object) -> object:
        """Hand a task to a child."""
        return delegate_task(CHILD, parent_job=get_current_job())

    script = {"parent": ["outcome = ask()\nprint(outcome)\nexit(1)"], "child": ["exit('forty-two')"]}
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED)
    parent = runtime.create_job(Agent("parent", tools=[ask]))
    outcome = runtime.run()
    assert outcome.waiting == ()
    assert parent.py_env.console[0].startswith('("forty-two",')
