from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM
from statek_sim.harness.settings import StatekSettings
from statek_sim.jobs import SubTaskHandler
from statek_sim.runtime.execution import toolbox
from statek_sim.runtime.execution.toolbox import system_tools
from statek_sim.runtime.jobs.job import job_context
from statek_sim.runtime.tools.spec import system_tool
from tests.unit.runtime_samples import UNLIMITED, Gate, idle_runtime, run_one


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (toolbox.get_pending_notifications, "get_pending_notifications requires a current job"),
        (toolbox.panic, r"panic\(\) requires a current Statek job context"),
    ],
)
def test_tools_about_the_current_job_need_one(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        function()


def test_outside_of_jobs_there_are_no_subtasks() -> None:
    assert toolbox.find_sub_task_handler() is None


def test_an_unknown_subtask_has_not_completed() -> None:
    job = run_one("find_sub_task_handler(id='t-1')", "print(find_sub_task_handler())", "exit(1)")
    assert job.py_env.console[:2] == [
        "RuntimeError: Sub-task id=t-1 has not completed; wait for the callback notification.",
        "None",
    ]


def test_the_newest_completed_subtask_is_found_without_an_id() -> None:
    runtime = idle_runtime()
    parent = runtime.create_job(Agent("parent"))
    handlers = [
        SubTaskHandler(runtime.create_job(Agent("child"), parent_job=parent), f"t-{n}") for n in (1, 2)
    ]
    for handler in handlers:
        handler.complete("fine")
    with job_context(parent):
        assert toolbox.find_sub_task_handler() is handlers[1]
        assert toolbox.find_sub_task_handler("t-1") is handlers[0]


def test_a_notification_goes_to_a_job_or_to_the_job_of_a_subtask() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    toolbox.send_notification_to(job, "one")
    toolbox.send_notification_to(SubTaskHandler(job), "two")
    assert [getattr(item, "message", None) for item in job.inbox.pending] == ["one", "two"]


def test_a_notification_goes_nowhere_else() -> None:
    with pytest.raises(TypeError, match=r"^target must be a Job or SubTaskHandler$"):
        toolbox.send_notification_to("job-1", "hello")  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_every_system_tool_carries_the_text_that_models_get(version: Any) -> None:
    for function in system_tools(version):
        own = system_tool(function)
        assert own is not None
        spec: Any = own.spec
        assert spec["function"]["name"] == function.__name__
        assert function.__name__ in own.docstr
        assert own.brief.startswith(f"{function.__name__}(")


def test_releases_share_no_system_tools() -> None:
    assert not set(system_tools("1.2")) & set(system_tools("1.4"))


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("list_of_examples()", "# No examples found"),
        ("show_example()", "# Example not found"),
        ("show_example(1)", "# No examples found"),
        ("default_example_id = 2\nshow_example()", "# No examples found"),
        ("list_of_documents('doors')", "# No documents found"),
        ("show_document('keys')", "# No documents found"),
        ("show_document()", "TypeError: show_document() missing 1 required positional argument: 'key'"),
    ],
)
def test_without_folders_there_are_no_examples_and_no_documents(code: str, output: str) -> None:
    # As STATEK 1.4.2 prints them.
    assert run_one(code, "exit(1)").py_env.console[0] == output


def test_the_contents_of_a_folder_of_documents_are_not_reproduced() -> None:
    llm = ScriptedLLM(["list_of_documents()", "exit(1)"])
    runtime = Runtime(llm, harness=UNLIMITED, settings=StatekSettings(documents_dir="documents"))
    job = runtime.create_job(Agent("worker"))
    runtime.run()
    assert job.py_env.console[0] == (
        "NotImplementedError: the reference runtime does not implement the system tool 'list_of_documents' with the "
        "setting documents_dir"
    )


@pytest.mark.parametrize("name", ["get_any", "get_all"])
def test_code_never_gets_an_answer_from_a_combination(name: str) -> None:
    first, second = Gate("first"), Gate("second")
    combine = getattr(toolbox, name)
    runtime = idle_runtime(script=[f"print({name}(first(), second()))", "exit(1)"])
    job = runtime.create_job(Agent("worker", tools=[first.tool, second.tool, combine]))
    runtime.at(1, first.open)
    runtime.run(until=2)
    assert job.py_env.console is None
    runtime.at(3, second.open)
    runtime.run()
    assert job.py_env.console[0] == "AttributeError: 'str' object has no attribute 'check_condition'"


def test_python_cli_does_nothing_when_code_calls_it() -> None:
    job = run_one("python_cli('x = 1')", "exit(1)")
    assert (job.py_env.console[0], job.py_env.local_state) == ("None", {})
