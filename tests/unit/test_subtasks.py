from __future__ import annotations

from collections.abc import Callable

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, code, tool
from statek_sim.jobs import (
    SubTaskHandler,
    SubTaskState,
    TaskError,
    complete_sub_task,
    create_sub_task,
    get_current_job,
    subtask,
)
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import Job, job_context
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import SubtaskCompleted
from tests.unit.runtime_samples import UNLIMITED, idle_runtime


@pytest.fixture
def child() -> Job:
    runtime = idle_runtime()
    return runtime.create_job(Agent("child"), parent_job=runtime.create_job(Agent("parent")))


def test_a_new_subtask_waits_and_is_among_the_childs_names(child: Job) -> None:
    handler = create_sub_task(child, id="t-1")
    assert handler.state is SubTaskState.WAITING
    assert child.py_env.local_state == {"sub_task_handler": handler}


def test_a_child_that_has_begun_or_ended_without_report_counts_as_started(child: Job) -> None:
    handler = create_sub_task(child)
    for status in (JobStatus.STARTED, JobStatus.DONE):
        child.life.move_to(status)
        assert handler.state is SubTaskState.STARTED


@pytest.mark.parametrize(
    ("outcome", "state", "text"),
    [({}, "COMPLETED", ""), ({"result": 42}, "COMPLETED", "42"), ({"result": "ok"}, "COMPLETED", "ok")],
)
def test_a_completed_subtask_reads_as_its_result(
    child: Job, outcome: dict[str, object], state: str, text: str
) -> None:
    handler = SubTaskHandler(child, "t-1")
    handler.complete(**outcome)  # type: ignore[arg-type]
    assert (handler.state, str(handler)) == (state, text)


def test_a_failed_subtask_reads_as_its_error(child: Job) -> None:
    handler = SubTaskHandler(child, "t-1")
    handler.complete(error="no access")
    assert (handler.state, handler.error) == (SubTaskState.ERROR, TaskError("no access"))
    with pytest.raises(RuntimeError, match=r"^no access$"):
        str(handler)


@pytest.mark.parametrize(("task_id", "label"), [("t-1", " id=t-1"), (None, "")])
def test_an_open_subtask_has_no_text(child: Job, task_id: str | None, label: str) -> None:
    with pytest.raises(RuntimeError, match=rf"^Sub-task{label} is not completed: WAITING$"):
        str(SubTaskHandler(child, task_id))


def test_a_subtask_is_completed_once(child: Job) -> None:
    handler = SubTaskHandler(child)
    handler.complete("first")
    with pytest.raises(RuntimeError, match=r"^Sub-task handler is already completed$"):
        handler.complete("second", error="both")
    assert handler.result == "first"


def test_an_outcome_is_a_result_or_an_error(child: Job) -> None:
    handler = SubTaskHandler(child)
    with pytest.raises(ValueError, match=r"^Sub-task completion cannot mix result and error$"):
        handler.complete("fine", error="not fine")
    assert not handler.is_completed


def test_the_parent_is_told_and_the_outcome_traced(child: Job) -> None:
    SubTaskHandler(child, "t-1").complete("fine")
    assert child.trace.of_type(SubtaskCompleted) == [SubtaskCompleted(0.0, child.id, "t-1", "fine", None)]
    assert child.parent_job is not None
    assert len(child.parent_job.inbox.pending) == 1


def test_a_subtask_without_a_parent_is_told_to_nobody() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    handler = create_sub_task(job)
    handler.complete("fine")
    assert str(handler) == "fine"


def with_wrong_handler(job: Job) -> None:
    job.add_locals(sub_task_handler="me")


@pytest.mark.parametrize(
    ("prepare", "kind", "message"),
    [
        (None, RuntimeError, r"^complete_sub_task requires a current job$"),
        (
            lambda job: None,
            RuntimeError,
            r"^complete_sub_task requires sub_task_handler in current job locals$",
        ),
        (with_wrong_handler, TypeError, r"^sub_task_handler must be a SubTaskHandler$"),
    ],
)
def test_completing_needs_a_current_job_with_a_handler(
    child: Job, prepare: Callable[[Job], None] | None, kind: type[Exception], message: str
) -> None:
    if prepare is None:
        with pytest.raises(kind, match=message):
            complete_sub_task()
        return
    prepare(child)
    with job_context(child), pytest.raises(kind, match=message):
        complete_sub_task()


def test_a_child_reports_from_its_own_code_and_the_parent_reads_the_result() -> None:
    @tool
    def delegate(**kwargs: object) -> None:
        """Start a child."""
        job = runtime.create_job(child_agent, parent_job=get_current_job())
        create_sub_task(job, id="t-1")

    child_agent = Agent("child", context={"complete_sub_task": complete_sub_task})
    script = {
        "child": [code("complete_sub_task('forty-two')\nexit(1)")],
        "parent": [
            code("delegate()"),
            code("x = 0").after(1),
            code("exit(str(find_sub_task_handler('t-1')))"),
        ],
    }
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED)
    parent = runtime.create_job(Agent("parent", tools=[delegate]))
    runtime.run()
    assert parent.py_env.exit_status == "forty-two"


@pytest.mark.parametrize(
    ("profile", "printed"),
    [
        ("1.2.5", "TypeError: SubTaskHandler.__init__() got an unexpected keyword argument '_local_context'"),
        ("1.2", "TypeError: SubTaskHandler.__init__() got an unexpected keyword argument '_local_context'"),
        ("1.4", "[]"),
    ],
)
def test_before_1_3_a_subtask_that_passes_its_keywords_on_fails(profile: str, printed: str) -> None:
    child = Agent("child")

    @subtask
    def assign(**kwargs: object) -> SubTaskHandler:
        """Assign work."""
        print(sorted(kwargs))
        return create_sub_task(current_runtime().create_job(child), **kwargs)  # type: ignore[arg-type]

    runtime = Runtime(
        ScriptedLLM({"boss": [code("assign(id='a')"), code("exit(1)")], "child": [code("exit(2)")]}),
        harness=UNLIMITED,
        profile=profile,
    )
    job = runtime.create_job(Agent("boss", tools=[assign]))
    runtime.run()
    assert printed in job.console
