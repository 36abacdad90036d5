"""What an application's owner inspects: its own limits, tools called by hand, class names, and names passed to tools."""
# mypy: ignore-errors

from dataclasses import dataclass

import dbzero as db0
import pytest
from statek import (
    LLM_Harness,
    LLM_HarnessError,
    complete_sub_task,
    create_new_job,
    create_sub_task,
    docstr,
    find_sub_task_handler,
    get_any,
    get_pending_notifications,
    init_shared_context,
    print_locals,
    shared_context_set_var,
    tool,
)
from statek.agents import SupervisedAgent
from statek.chat_style import ChatStyle
from statek.exceptions import FutureError
from statek.executors.job import Job, JobStatus
from statek.future import FutureResult, get_all_future, get_any_future, temporal
from statek.prompt_config import make_system_prompt
from statek.system import brief, panic
from statek.task import delegate_task
from statek.testing import statek_context

from statek_sim import text, tool_call, tool_calls

Stage = db0.enum("Stage", ["PACKED", "SENT"])


@db0.memo
@dataclass
class Voice:
    name: str
    note: str = None


def _sung(future):
    return future.deps.note is not None


def _note(future):
    if future.deps.note is None:
        raise FutureError(future)
    return future.deps.note


@temporal(complement=_note, condition=_sung)
@tool
def sing(voice: Voice, **kwargs) -> FutureResult:
    """Sing."""
    return FutureResult(voice, state_num=0)


@temporal(extends=delegate_task)
@tool
def pass_on(**kwargs) -> FutureResult:
    """Pass on to another."""
    return delegate_task(agent("other"), shared_vars={"n": 1})


@tool
def names(*wanted, **kwargs):
    """Tell which names come with the call."""
    return [name for name in wanted if name in kwargs["_local_context"]]


def agent(role, *tools, **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You are looked at."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


WIDE = pytest.mark.statek(limits={"max_turns": 20, "max_exceptions": 9, "max_consecutive_exceptions": 9})


@WIDE
def test_names_that_come_with_a_call(statek_app, facts):
    asked = "names('limit', 'own', 'warm', 'names', 'print', 'exit', 'docstr')"
    statek_app.script(
        worker=[
            f"own = 1\n{asked}",
            f"for n in range(1):\n    limit = n\n    print({asked})",
            tool_call("names"),
            f"def f():\n    return {asked}\nf()",
            "exit(1)",
        ]
    )
    made = agent("worker", names, LLM_TOOLS_SCOPE="APPLICATION")
    statek_app.create_job(made, shared_vars={"limit": 5}, warmup_code=f"warm = 1\n{asked}")
    statek_app.run()


@pytest.mark.statek(limits={"max_turns": 9, "limit_extension_per_completion": 0.5})
def test_a_harness_of_its_own(statek_app, facts):
    statek_app.script(worker=["print(1)", "print(2)", "exit(1)", "exit(2)"])
    job = statek_app.create_job(agent("worker"))
    own = LLM_Harness(1, 0, 0, None, limit_extension_per_completion=1.0)
    for moment in ("finished", "asked again"):
        statek_app.run()
        facts.attempt(f"{moment}, before", lambda: own.check_before_step(job))
        facts.attempt(f"{moment}, after", lambda: own.check_after_step(job))
        job.push_user_message("go on")
    facts["is an error"] = issubclass(LLM_HarnessError, Exception)
    statek_app.script(worker=[text("```python\nexit(3)\n```")])
    statek_app.run()


def test_tools_called_by_hand(statek_app, facts, capsys):
    calls = {
        "complete_sub_task": lambda: complete_sub_task("x"),
        "panic": panic,
        "get_pending_notifications": get_pending_notifications,
        "init_shared_context": lambda: init_shared_context("a"),
        "find_sub_task_handler": find_sub_task_handler,
        "shared_context_set_var": lambda: shared_context_set_var("ENTITY", "dog", "Rex", ""),
        "print_locals": lambda: print_locals("entity"),
        "print_locals of no category": lambda: print_locals("nothing"),
        "print_locals of no type": lambda: print_locals("entity", 3),
        "docstr": lambda: docstr(names),
        "brief": lambda: brief(names),
        "names": lambda: names("a"),
        "get_any": lambda: get_any(),
    }
    for name, call in calls.items():
        facts.attempt(name, call)
        facts[f"{name}, printed"] = capsys.readouterr().out


@WIDE
def test_tool_calls_in_replies(statek_app, facts):
    statek_app.script(
        worker=[
            tool_calls(tool_call("names"), tool_call("python_cli", code="print(1)"), tool_call("names")),
            tool_calls(tool_call("names"), text="Only this."),
            tool_call("python_cli", code="exit(2)"),
        ]
    )
    made = agent("worker", names, LLM_TOOLS_SCOPE="APPLICATION +python_cli")
    job = statek_app.create_job(made)
    job.job_def.set_chat_style(ChatStyle.DIRECT)
    statek_app.run()
    for number, item in enumerate(job.chat_log):
        block = item.llm_resp
        facts[f"reply {number}"] = {
            "regular": [call.func_name for call in block.get_regular_tool_calls() or ()],
            "cli": [call.kwargs["code"] for call in block.get_cli_tool_calls() or ()],
            "none": [block.get_regular_tool_calls() is None, block.get_cli_tool_calls() is None],
            "chosen": block.get_tool_calls(lambda call: call.func_name == "nothing"),
            "places": [block.get_tool_call_id(call) for call in block.tool_calls],
        }


@WIDE
def test_tags_on_jobs(statek_app, facts):
    statek_app.script(worker=["exit(1)"] * 3, other=["exit(2)"])
    made = agent("worker")
    jobs = [create_new_job(made) for _ in range(3)] + [create_new_job(agent("other"))]
    voice = Voice("alto")
    db0.tags(voice).add("loud")
    db0.tags(jobs[0], jobs[1]).add(["loud", Stage.PACKED])
    db0.tags(jobs[1]).add(db0.as_tag(voice), "late")
    statek_app.run()
    db0.tags(jobs[3]).add("late")

    def found(*criteria):
        try:
            return sorted(
                "voice" if isinstance(one, Voice) else f"job {jobs.index(one)}" for one in db0.find(*criteria)
            )
        except RuntimeError as error:
            return str(error)

    facts["found"] = {
        "tag": found("loud"),
        "tag and class": found("loud", Job),
        "class and tag": found(Job, "loud"),
        "enumeration": found(Job, Stage.PACKED),
        "two": found(Job, "loud", "late"),
        "either": found(Job, ["loud", "late"]),
        "not": found(Job, db0.no("loud")),
        "object": found(Job, db0.as_tag(voice)),
        "status": found(Job, JobStatus.DONE, "late"),
        "agent": found(Job, "late", db0.as_tag(made)),
        "none": found(Job, "unheard"),
        "two classes": found(Job, Voice),
        "classes in a list": found([Job, Voice]),
        "a class in a tuple": found((Voice, "loud")),
        "a class in a list": found("loud", [Voice]),
        "not a class": found(Voice, db0.no(Job)),
        "a query": found("loud", db0.find(Voice)),
    }
    db0.tags(jobs[0]).remove("loud", "never")
    facts["after"] = [found("loud"), found(Job, Stage.PACKED), found(Voice, "loud")]


@WIDE
def test_names_of_classes(statek_app, facts):
    statek_app.script(
        boss=["task = pass_on()", "print(task)\nsing(voice)"],
        other=["exit(n)"],
    )
    voice = Voice("alto")
    job = statek_app.create_job(agent("boss", pass_on, sing), shared_vars={"voice": voice})
    statek_app.run()
    futures = sing(voice), get_any_future(sing(voice)), get_all_future(sing(voice), sing(voice))
    handler = create_sub_task(create_new_job(agent("ill")), id=1)
    with statek_context(job=handler.job):
        complete_sub_task(error="ill")
    shown = (job, job.job_def, job.py_env, job.usage, job.status, job.agent, voice, handler, handler.error)
    facts["classes"] = [
        type(one).__name__
        for one in (*shown, *futures, *job.chat_log, *job.py_env.local_state.values(), job.awaited_result)
    ]
    facts.attempt("value", lambda: futures[2].value)
    for future in futures:
        with pytest.raises(FutureError) as raised:
            future.value  # noqa: B018  # reading it is the test
        facts[type(future).__name__] = [type(raised.value.future_result).__name__, raised.value.instr_num]
