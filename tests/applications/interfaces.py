"""What STATEK's own objects tell an application: workspaces, prices, handlers, reminders, items of chat logs."""
# mypy: ignore-errors

import functools
from datetime import date
from decimal import Decimal

import dbzero as db0
import pytest
from statek import (
    FinalCheck,
    SubTaskHandler,
    create_new_job,
    create_sub_task,
    docstr,
    error_handler,
    shared_context_set_var,
    subtask,
    tool,
)
from statek.agents import DialogAgent, RecurringReminder, Reminder, SupervisedAgent
from statek.executors.job import ErrorHandler
from statek.model_pricing import set_model_pricing
from statek.prompt_config import make_system_prompt
from statek.utils import perm_ctx_get, perm_ctx_set

from statek_sim import code, fault, raw, text, timeout, tool_call

Level = db0.enum("Level", ["LOW", "HIGH"])
TOLD = []


@error_handler
def _give_back(context, error=None):
    response = getattr(error, "response", None)
    status = response and response.status_code
    TOLD.append([type(error).__module__, type(error).__qualname__, str(error), status, context])


@tool(error_handler=_give_back)
def claim(**kwargs) -> int:
    """Take something."""
    return 7


@tool
def level(**kwargs) -> Level:
    """Say the level."""
    return Level.HIGH


@tool
def level_type(value: Level, **kwargs) -> str:
    """Say what type an enum value has."""
    return [type(value).__name__, type(value).__qualname__, type(Level).__name__]


def logged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        print(args, sorted(kwargs))
        return function(*args, **kwargs)

    return call


@tool
@logged
def measure(size: float, day: date = "2026-01-02", level: Level = "LOW", note: str = "", **kwargs):
    """Measure something."""
    return [str(size), str(day), str(level), note]


def send(body, media=None):
    TOLD.append(body)


def create(*tools, role="clerk", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You write for {who}."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def workspace(job):
    env = job.py_env
    return [env.console, env.exceptions, env.push_log, env.exit_status, env.future_result, env.perm_ctx]


def test_a_workspace_before_and_after_output(statek_app, facts):
    statek_app.script(clerk=["x = 1", "print('out')", "1/0", "exit(1)"])
    job = create_new_job(create())
    facts["before"] = workspace(job)
    facts["pushed"] = job.push_user_message("hello")
    facts["after a push"] = workspace(job)[:3]
    statek_app.run()
    facts["after"] = workspace(job)[0]


@pytest.mark.parametrize("price", [2.5, 0.1, Decimal("2.5"), 3, "1.5"], ids=repr)
def test_prices_of_other_types(statek_app, facts, price):
    replies = [code(source).reporting(prompt=100, completion=20) for source in ("x = 1", "exit(1)")]
    statek_app.script(clerk=replies[:1] if isinstance(price, float | str) else replies)
    facts.attempt(
        "set",
        lambda: str(
            set_model_pricing(
                "OPENROUTER", "openai/gpt-4o", price, price, model_family="openai"
            ).output_price_per_M
        ),
    )
    job = create_new_job(create())
    statek_app.run()
    facts.attempt("cost", lambda: job.usage.total_cost)
    facts["error"] = job.error and job.error.error_message


def test_types_of_enum_values(statek_app, facts):
    facts["here"] = [type(Level.LOW).__name__, type(Level).__name__, repr(Level.LOW), str(Level.LOW)]
    statek_app.script(
        clerk=[
            "v = level()\nprint(v)",
            "print(level_type(v))\nprint(level_type(level()))",
            "print(f'{v!r} {v}')",
            "exit(1)",
        ]
    )
    create_new_job(create(level, level_type))
    statek_app.run()
    facts.attempt("added", lambda: Level.LOW + 1)


def test_handlers_of_a_job(statek_app, facts):
    statek_app.script(clerk=["claim()", "exit(1)"])
    job = create_new_job(create(claim))
    facts["before"] = [len(job.error_handlers), bool(job.error_handlers), list(job.error_handlers)]
    facts.attempt("first of none", lambda: job.error_handlers[0])
    statek_app.run()
    facts["count"] = len(job.error_handlers)
    facts.attempt("first", lambda: [type(job.error_handlers[0]).__name__, job.error_handlers[0].context])
    facts.attempt("last", lambda: job.error_handlers[-1].context)
    facts.attempt("iterated", lambda: [handler.context for handler in job.error_handlers])
    facts.attempt("type", lambda: isinstance(job.error_handlers[0], ErrorHandler))


def test_reminders_and_prompts(statek_app, facts):
    facts.attempt("abstract", lambda: type(Reminder("x")).__name__)
    facts.attempt("concrete", lambda: RecurringReminder("x").text)
    agent = create()
    facts.attempt("no argument", agent.system_prompt)
    facts.attempt("none", lambda: agent.system_prompt(None))
    facts.attempt("params", lambda: agent.system_prompt(None, {"who": "Ada"}))
    facts.attempt("keywords", lambda: agent.system_prompt(who="Ada"))
    facts.attempt("job_params", lambda: agent.system_prompt(job_params={"who": "Ada"}))
    facts.attempt("both", lambda: agent.system_prompt(None, {"who": "Ada"}, who="Bob"))


@pytest.mark.parametrize(
    "model",
    [
        "x/rl=50",
        "openai/gpt-4o/reasoning_level=5",
        "rl=50",
        "x/",
        "x/rl=low",
        "x/rl=101",
        "x/rl=05",
        "x/rl=1/reasoning_level=2",
    ],
)
def test_models_of_odd_names(statek_app, facts, model):
    facts.attempt("job", lambda: create_new_job(create(MODEL=model)).status)
    statek_app.run()


@pytest.mark.parametrize(
    "reply",
    [
        fault(500).times(3),
        fault(404),
        fault(401),
        fault(429).times(3),
        timeout().times(3),
        raw("{"),
        raw({"choices": []}),
        raw({"error": "x"}),
    ],
    ids=lambda reply: str(reply.answer)[:24],
)
def test_what_handlers_are_given_when_a_provider_fails(statek_app, facts, reply):
    TOLD.clear()
    statek_app.script(clerk=["claim()", reply])
    job = create_new_job(create(claim))
    statek_app.run()
    facts["told"] = [list(item) for item in TOLD]
    facts["error"] = job.error and job.error.error_message


def test_notifications_in_the_chat_log(statek_app, facts):
    statek_app.script(clerk=["x = 1", "exit(1)", "exit(2)"])
    job = create_new_job(create())
    statek_app.at(1.5, lambda: job.send_notification("look"))
    statek_app.run()
    facts["items"] = [
        [type(item).__name__, item.console_pos, item.tool_log, str(item.timestamp)] for item in job.chat_log
    ]
    facts["created"] = str(job.created_at)


@subtask
def ask(question: str, **kwargs) -> SubTaskHandler:
    """Ask another agent.

    Args:
        question: What to ask.
    """
    return create_sub_task(create_new_job(create(role="helper")))


@tool
def keywords(**kwargs) -> str:
    """Say what was passed."""
    return sorted(kwargs)


@tool
def kept(name: str = None, **kwargs):
    """Keep and read."""
    if name is None:
        return perm_ctx_get("k", "nothing")
    perm_ctx_set(k=name)


@pytest.mark.statek(
    limits={"max_exceptions": 19, "max_consecutive_exceptions": 19, "max_turns": 20, "max_token_usage": None}
)
def test_tools_of_statek_in_code(statek_app, facts):
    facts.attempt("docstr here", lambda: docstr(ask))
    facts.attempt("docstr of a tool", lambda: docstr(kept))
    statek_app.script(
        clerk=[
            "docstr(ask)",
            "print(keywords())",
            tool_call("keywords").mistaken(),
            "kept('a')\nprint(kept())",
            "print(kept())",
            tool_call("kept").mistaken(),
            tool_call(
                "shared_context_set_var", category="ENTITY", key="k", value=1, description="d"
            ).mistaken(),
            "shared_context_set_var('ENTITY', 'k', 1, 'd')",
            "print(k)",
            "exit(1)",
        ]
    )
    create_new_job(create(ask, keywords, kept, shared_context_set_var))
    statek_app.run()


@pytest.mark.parametrize(
    "warmup",
    [
        "exit('t') #STATEK: as tool",
        "print('p') #STATEK: as tool\nx = 1",
        "keywords(zeta=1, a=2, m='x') #STATEK: as tool",
    ],
)
def test_builtins_as_tools_of_warmup(statek_app, facts, warmup):
    statek_app.script(clerk=[] if "exit" in warmup else ["exit(1)"])
    facts.attempt("made", lambda: create_new_job(create(keywords), warmup_code=warmup).status)
    facts.attempt("ran", lambda: statek_app.run().settled)


MEASURED = ["name", "value", "parsed", "changed", "size", "width"]


@pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None},
)
def test_names_that_a_model_gives(statek_app, facts):
    statek_app.script(
        clerk=[
            "\n".join(f"{name} = 7" for name in MEASURED),
            *(tool_call("measure", size=name) for name in MEASURED),
            tool_call("measure", size=1, level="HIGH", note="name"),
            tool_call("measure", note="x", size=2, day=None),
            "measure(1)\nmeasure('width', note='x')\nmeasure(note='x', size=3, level='HIGH')",
            "exit(1)",
        ]
    )
    statek_app.create_job(create(measure, LLM_TOOLS_SCOPE="APPLICATION"), who="Ada")
    statek_app.run()


def test_members_of_items_in_the_chat_log(statek_app, facts):
    helper = DialogAgent(send, role="helper", _metadata={"MODEL": "openai/gpt-4o"})
    helper.update_system_prompt(make_system_prompt("You help."))
    helper.set_new_reminder("Be short.", min_dialog_len=1)
    statek_app.script(helper=[text("one"), text("two"), code("answer('three')")])
    job = statek_app.create_job(helper, message="Hi", post_processing=FinalCheck())
    statek_app.run()
    facts["log"] = [
        [getattr(item, name, "none") for name in ("tool_log", "console_pos", "message")]
        for item in job.chat_log
    ]
