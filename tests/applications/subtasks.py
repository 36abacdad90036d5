"""A newsroom: an editor hands stories to writers, who report back or send word."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import (
    complete_sub_task,
    create_new_job,
    create_sub_task,
    find_sub_task_handler,
    get_current_job,
    subtask,
    tool,
)
from statek.agents import SupervisedAgent
from statek.executors.job import Job, JobStatus
from statek.prompt_config import make_system_prompt
from statek.task import SubTaskHandler, SubTaskState, delegate_mute_task, delegate_task

from statek_sim import tool_call


@db0.memo(singleton=True)
class Room:
    def __init__(self):
        self.writers = {}


@subtask
def assign(topic: str, **kwargs):
    """Give a story to the writer.

    Args:
        topic (required): What about.
    """
    return create_new_job(Room().writers["writer"], {"topic": topic}, get_current_job())


@subtask
def assign_with_handler(topic: str, **kwargs):
    """Give a story, with a handler of its own."""
    job = create_new_job(Room().writers["writer"], {"topic": topic}, get_current_job())
    return SubTaskHandler(job)


@subtask
def assign_nothing(**kwargs):
    """Return something else."""
    return 5


@tool
def finish(result: str = None, error: str = None, **kwargs):
    """Report."""
    complete_sub_task(result, error)


@tool
def hire(topic: str, **kwargs):
    """Have somebody write and wait for it."""
    return delegate_task(Room().writers["writer"], shared_vars={"topic": topic}, parent_job=get_current_job())


@tool
def muse(topic: str, **kwargs):
    """Have somebody write and read it."""
    return delegate_mute_task(Room().writers["writer"], shared_vars={"topic": topic})


def agent(role, *tools, **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You work."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.fixture
def editor(statek_app):
    Room().writers["writer"] = agent("writer", finish)
    return agent("editor", assign, assign_with_handler, assign_nothing, hire, muse)


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


@MANY
def test_a_story_comes_back(statek_app, editor, facts):
    statek_app.script(
        editor=[
            "t = assign('cats', id='cats')\nprint(t.id, t.state)",
            "x = 1",
            "print(find_sub_task_handler('cats'))",
            "exit('printed')",
        ],
        writer=["finish('a story about ' + topic)\nexit('ok')"],
    )
    job = statek_app.create_job(editor, name="editor")
    statek_app.run()
    handler = job.find_sub_task_handler(id="cats")
    facts["handler"] = [
        handler.id,
        str(handler.state),
        handler.is_completed,
        str(handler.result),
        handler.error is None,
        str(handler),
    ]
    facts["newest"] = job.find_sub_task_handler() == handler
    facts.attempt("unknown", lambda: job.find_sub_task_handler(id="dogs"))
    facts.attempt("again", lambda: handler.complete("x"))


@MANY
def test_a_story_fails(statek_app, editor, facts):
    statek_app.script(
        editor=[
            "t = assign('cats')",
            "x = 1",
            "print(find_sub_task_handler())",
            "print(find_sub_task_handler('x'))",
            "exit('printed')",
        ],
        writer=["finish(error='no idea')\nexit('ok')"],
    )
    job = statek_app.create_job(editor, name="editor")
    statek_app.run()
    handler = job.find_sub_task_handler()
    facts["handler"] = [handler.id, str(handler.state), handler.error.err_message, handler.get_log_message()]
    facts.attempt("text", lambda: str(handler))


@MANY
def test_wrong_use_of_subtasks(statek_app, editor, facts):
    statek_app.script(
        editor=[
            "assign_nothing()",
            "h = assign_with_handler('x', id='7')\nprint(h.id)",
            "finish('x')",
            "y = 1",
            "z = 1",
            "exit(1)",
        ],
        writer=["finish('x', 'y')", "finish('x')\nfinish('y')", "exit(2)"],
    )
    statek_app.create_job(editor, name="editor")
    statek_app.run()
    facts.attempt("outside", lambda: complete_sub_task("x"))
    facts.attempt("no job", lambda: find_sub_task_handler(id="x"))


@MANY
def test_delegated_work_is_awaited(statek_app, editor, facts):
    statek_app.script(
        editor=[
            "r = hire('cats')\nstatus, job = r\nprint(status)",
            "m = muse('dogs')\nprint(m)",
            "y = 1",
            "exit('both')",
        ],
        writer=["exit('done ' + topic)", "print('a')", "exit(topic)"],
    )
    statek_app.create_job(editor, name="editor")
    statek_app.run()


@MANY
def test_a_child_that_dies_is_told_by_its_exit(statek_app, editor, facts):
    statek_app.script(
        editor=["r = hire('cats')\nstatus, job = r\nprint(status)", "exit('over')"], writer=["1/0"] * 11
    )
    statek_app.create_job(editor, name="editor")
    statek_app.run()


def test_states_of_handlers(statek_app, editor, facts):
    job = create_new_job(Room().writers["writer"], {"topic": "x"})
    handler = create_sub_task(job, id=3)
    facts["waiting"] = [str(handler.state), handler.state == SubTaskState.WAITING, handler.id]
    facts.attempt("unfinished", lambda: str(handler))
    facts.attempt("notify", lambda: job.push_notification(handler))
    facts["found"] = [one == job for one in db0.find(Job, JobStatus.READY)]
    statek_app.script(writer=["finish('z')\nexit(1)"])
    statek_app.run()
    facts["after"] = [str(handler.state), str(handler)]
    facts["locals"] = sorted(dict(job.py_env.local_state))


def test_a_model_assigns_by_a_call(statek_app, facts):
    Room().writers["writer"] = agent("writer", finish)
    boss = agent("editor", assign, LLM_TOOLS_SCOPE="APPLICATION")
    statek_app.script(
        editor=[tool_call("assign", topic="cats", id="c"), "x = 1", "y = 1", "exit('ok')"],
        writer=["finish('s')\nexit(1)"],
    )
    statek_app.create_job(boss, name="editor")
    statek_app.run()
