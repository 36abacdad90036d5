"""A records office: the texts of what STATEK stores, and the statuses, as an application reads them."""
# mypy: ignore-errors

import json
from decimal import Decimal

import dbzero as db0
import pytest
from statek import (
    FinalCheck,
    SubTaskHandler,
    SubTaskState,
    complete_sub_task,
    create_new_job,
    error_handler,
    get_current_job,
    subtask,
    tool,
)
from statek.agents import DialogAgent, SupervisedAgent
from statek.chat_style import ChatStyle
from statek.executors.job import JobStatus
from statek.future import FutureResult
from statek.locale import resolve_locale
from statek.model_pricing import set_model_pricing
from statek.prompt_config import make_system_prompt
from statek.pyenv import ErrorKind
from statek.task import delegate_mute_task, delegate_task, start_dialog
from statek.task_difficulty import TaskDifficulty

from statek_sim import text, tool_call, tool_calls


@db0.memo
class Folder:
    def __init__(self, name):
        self.name = name
        self.pages = [1, 2]


@db0.memo
class Delivery(FutureResult):
    def __init__(self):
        super().__init__(deps=None, state_num=0)


STAFF = {}
SENT = []
MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


def send(body, media=None):
    """Talk to the reader."""
    SENT.append(body)


@tool
def look_up(number: int, **kwargs):
    """Look a record up."""
    if number > 2:
        raise LookupError(f"there is no record {number}")
    return {"number": number}


@subtask
def hand_on(number: int, **kwargs):
    """Hand a record on."""
    return create_new_job(STAFF["copyist"], shared_vars={"number": number}, parent_job=get_current_job())


@tool
def report(result: str, failed: bool = False, **kwargs):
    """Report."""
    complete_sub_task(None, result) if failed else complete_sub_task(result)


@tool
def have_copied(number: int, **kwargs):
    """Have a record copied."""
    return delegate_task(STAFF["copyist"], shared_vars={"number": number}, post_processing=FinalCheck())


@tool
def have_read(number: int, **kwargs):
    """Have a record read out."""
    return delegate_mute_task(STAFF["reader"], shared_vars={"number": number}, post_processing=FinalCheck())


def clerk(role, *tools, **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You keep records."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def texts(value):
    return [str(value), repr(value), f"{value}"]


@MANY
def test_texts_of_a_job_s_parts(statek_app, facts):
    agent = clerk("clerk", look_up, LLM_TOOLS_SCOPE="APPLICATION")
    agent.update_warmup_def("look_up(1) #STATEK: as tool\nprint('open')")
    calls = tool_calls(tool_call("look_up", number=1), tool_call("look_up", number=3))
    statek_app.script(clerk=[calls, tool_call("look_up", number=2), "1/0", "exit('closed')"])
    job = statek_app.create_job(agent, message="Hello")
    statek_app.run()
    warmup, first, second, *_ = job.chat_log
    block = first.llm_resp
    facts["items"] = [texts(item) for item in job.chat_log]
    facts["blocks"] = [texts(block), texts(second.llm_resp)]
    facts["calls"] = [texts(call) for call in block.tool_calls]
    facts["results"] = [texts(result) for result in first.tool_log]
    facts["errors"] = [[key, *texts(error)] for key, error in job.py_env.exceptions.items()]
    facts["formatted"] = [call.format() for call in block.tool_calls]
    facts["args"] = [call.args == [] for call in block.tool_calls]
    facts["one result"] = [str(first.get_tool_result(0)), first.get_tool_result(1).err_message]
    facts.attempt("no result", lambda: job.chat_log[-1].get_tool_result(0))
    facts["of the request"] = [first.request_difficulty, first.llm_reasoning_payload]
    kind = next(iter(job.py_env.exceptions.values())).kind
    facts["kind"] = [*texts(kind), kind == ErrorKind.EXECUTION, kind == ErrorKind.HARNESS]
    facts["warmup"] = texts(warmup)


@pytest.mark.parametrize(
    "kind", [JobStatus, SubTaskState, ErrorKind, ChatStyle], ids=["status", "state", "kind", "style"]
)
def test_an_enumeration(statek_app, facts, kind):
    first, second, *_ = kind.values()
    facts["values"] = [str(value) for value in kind.values()]
    facts["texts"] = texts(first)
    facts["equal"] = [first == kind[str(first)], first == second, first != second, first in kind.values()]
    facts["key"] = {first: 1}[first]


@MANY
def test_a_status_is_not_its_text(statek_app, facts):
    STAFF["copyist"] = clerk("copyist", report)
    statek_app.script(
        clerk=["one = hand_on(1, id='one')\ntwo = hand_on(2, id='two')\nexit('waiting')", "exit('a')"],
        copyist=["report('copied')\nexit(1)", "report('burnt', failed=True)\nexit(2)"],
    )
    job = statek_app.create_job(clerk("clerk", hand_on))
    facts["before"] = [
        job.status == "READY",
        job.status != "READY",
        *texts(job.status),
    ]
    facts["equal before"] = [
        job.status == JobStatus.READY,
        job.job_status in (JobStatus.READY, JobStatus.DONE),
    ]
    statek_app.run()
    facts["after"] = [job.status == JobStatus.DONE, job.status == "DONE", str(job.status) == "DONE"]
    handlers = [item.handler for item in job.chat_log if type(item).__name__ == "SubTaskLogItem"]
    facts["kinds"] = [isinstance(handler, SubTaskHandler) for handler in handlers]
    facts["states"] = [
        [str(handler.state), handler.state == SubTaskState.ERROR, handler.state == "ERROR"]
        for handler in handlers
    ]
    facts["failure"] = [texts(handler.error) for handler in handlers]
    facts["logged"] = [handler.get_log_message() for handler in handlers]


@MANY
def test_a_dialog_has_its_own_post_processor(statek_app, facts):
    SENT.clear()
    agent = DialogAgent(send, role="desk", _metadata={"MODEL": "openai/gpt-4o", "CHAT_STYLE": "DIRECT"})
    statek_app.script(desk=[text("A draft."), text("The answer.")])
    job = start_dialog(agent, "Where is record 1?", post_processing=FinalCheck())
    statek_app.run()
    facts["sent"] = list(SENT)
    facts["log"] = [type(item).__name__ for item in job.chat_log]
    facts["processed"] = [texts(item) for item in job.chat_log[1:2]]


@MANY
def test_delegated_work_has_its_own_post_processor(statek_app, facts):
    STAFF["copyist"] = clerk("copyist")
    STAFF["reader"] = DialogAgent(
        send, role="reader", _metadata={"MODEL": "openai/gpt-4o", "CHAT_STYLE": "DIRECT"}
    )
    statek_app.script(
        clerk=["done = have_copied(1)\nprint(done[0])", "said = have_read(2)\nprint(said)", "exit('closed')"],
        copyist=["exit(number)"],
        reader=[text("A draft."), text("Two.")],
    )
    statek_app.create_job(clerk("clerk", have_copied, have_read))
    statek_app.run()
    facts["agents"] = [one.agent for one in statek_app.jobs]


@MANY
def test_stored_objects_are_not_json(statek_app, facts):
    values = (
        "folder",
        "[folder]",
        "{'f': folder}",
        "folder.pages",
        "{'p': [1, folder.name]}",
        "status",
        "None",
        "{1, 2}",
    )
    codes = [f"import json\nprint(json.dumps({value}))" for value in values]
    codes += [
        "import json\nprint(json.dumps([folder], default=lambda one: one.name))",
        "import json\njson.dumps(1, 2)",
    ]
    codes += [
        "import json\nprint(json.dumps({'b': 1, 'a': folder.name}, sort_keys=True, indent=1))",
        "exit(1)",
    ]
    statek_app.script(clerk=codes)
    folder = Folder("x")
    shared = {"folder": folder, "status": JobStatus.READY}
    job = statek_app.create_job(clerk("clerk"), shared_vars=shared)
    statek_app.run()
    facts["printed"] = list(job.py_env.console)
    facts.attempt("by the application", lambda: json.dumps(folder))


@MANY
def test_a_refused_job_has_no_name(statek_app, facts):
    agent = clerk("clerk")
    statek_app.script(clerk=["exit(1)", "exit(2)"])
    statek_app.create_job(agent)
    facts.attempt("refused value", lambda: statek_app.create_job(agent, shared_vars={"when": object()}))
    facts.attempt("refused warmup", lambda: statek_app.create_job(agent, warmup_code="x = 1 +"))
    statek_app.create_job(agent)
    statek_app.run()


@MANY
def test_what_a_definition_keeps(statek_app, facts):
    agent = clerk("clerk", look_up)
    sources = {
        "none": None,
        "text": "x = 1",
        "blocks": ["x = 1", "print(x)"],
        "separated": "x = 1\n# ----------\nprint(x)",
        "call": "look_up(1) #STATEK: as tool",
        "hidden": "#STATEK: hidden = True\nx = 1",
    }
    for name, source in sources.items():
        job = statek_app.create_job(agent, warmup_code=source)
        kept = job.job_def.warmup_code
        facts[name] = [str(kept) if source is None else type(kept).__name__.lower(), repr(kept)]
    processed = statek_app.create_job(agent, post_processing=FinalCheck())
    facts["processed"] = [repr(list(processed.job_def.post_processing)), job.job_def.post_processing]


def test_errors_of_wrong_uses(statek_app, facts):
    facts.attempt("future", lambda: Delivery().value)
    facts.attempt("condition", lambda: Delivery().check_condition())
    job = statek_app.create_job(clerk("clerk"))
    facts.attempt("locals", lambda: job.find_locals(name="x"))
    facts.attempt("model", lambda: job.get_current_model(1, 2))
    facts.attempt("style", lambda: job.job_def.set_chat_style())


def _handler(context, error=None):
    pass


def handler(context, error=None):
    pass


@error_handler
def _noted(context, error=None):
    pass


def _of_three(context, more, error=None):
    pass


def _without_default(context, error):
    pass


@pytest.mark.parametrize(
    "wrong",
    [_handler, *map(error_handler, [handler, _of_three, _without_default])],
    ids=lambda one: one.__name__,
)
def test_wrong_handlers(statek_app, facts, wrong):
    def claim(**kwargs):
        return 1

    facts.attempt("tool", lambda: tool(error_handler=wrong)(claim))


def test_functions_that_are_no_tools(statek_app, facts):
    facts.attempt("tool", lambda: tool(lambda number: number))
    facts.attempt("subtask", lambda: subtask(lambda number: number))
    facts.attempt("id", lambda: subtask(lambda id, **kwargs: 1))  # noqa: A006


def test_handlers_that_the_application_runs(statek_app, facts):
    statek_app.script(clerk=["exit(1)"])
    job = statek_app.create_job(clerk("clerk"), name="job")
    job.add_error_handler(_noted, ["x", 1])
    statek_app.run()
    job.notify_handlers(error=RuntimeError("by hand"))
    job.notify_handlers()


@MANY
def test_notifications(statek_app, facts):
    statek_app.script(clerk=["print(1)", "panic()", "exit(2)", "exit(3)"])
    job = statek_app.create_job(clerk("clerk"), warmup_code="x = 1")
    job.send_notification("first")
    statek_app.run()
    job.send_notification("second")
    facts["before"] = [[key, item.message] for key, item in job.iter_notification_log_items()]
    statek_app.run()
    facts["after"] = [[key, *texts(item)] for key, item in job.iter_notification_log_items()]


def test_texts_of_other_stored_objects(statek_app, facts):
    agent = clerk("clerk")
    agent.update_warmup_def("x = 1")
    dialog = DialogAgent(send, role="desk", _metadata={"MODEL": "openai/gpt-4o"})
    reminder = dialog.set_new_reminder("Anything else?")
    job = statek_app.create_job(agent)
    pricing = set_model_pricing("OPENAI", "gpt-4o", Decimal("0.25"), Decimal(2))
    locale = resolve_locale("PL-PL")
    stored = (
        agent,
        agent.warmup_def,
        dialog,
        reminder,
        job,
        job.job_def,
        job.py_env,
        job.usage,
        pricing,
        locale,
    )
    facts["texts"] = [str(one) for one in (*stored, FinalCheck(), Folder("x"), Delivery())]


@MANY
def test_models_by_difficulty(statek_app, facts):
    agent = clerk("clerk", MODEL="L:openai/small,M:openai/middle,H:openai/large")
    statek_app.script(clerk=["panic()", "1/0", "exit(1)"])
    job = statek_app.create_job(agent)
    facts["first"] = job.get_current_model()
    statek_app.run()
    facts["last"] = job.get_current_model()
    facts["by value"] = [job.get_current_model(level) for level in TaskDifficulty.values()]
    facts.attempt("by text", lambda: job.get_current_model("low"))
    facts.attempt("by another text", lambda: job.get_current_model("nope"))


def test_texts_of_an_error(statek_app, facts):
    statek_app.script(clerk=["1/0", "1/0", "never"])
    job = statek_app.create_job(clerk("clerk"))
    statek_app.run()
    facts["error"] = texts(job.error)


def test_what_stored_collections_say_of_themselves(statek_app, facts):
    shared = {"list": [1], "tuple": (1,), "dict": {1: 2}, "set": {1}}
    job = statek_app.create_job(clerk("clerk"), shared_vars=shared)
    facts["docs"] = {name: type(job.py_env.local_state[name]).__doc__ for name in shared}
