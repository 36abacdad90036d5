"""A supervisor that measures its jobs, stops them, and starts its worker with settings of its own."""
# mypy: ignore-errors

import asyncio

import dbzero as db0
import pytest
from statek import (
    LLM_Harness,
    StatekSettings,
    create_new_job,
    docstr,
    get_current_job,
    get_llm_harness,
    get_statek_settings,
    init,
    start_statek,
    start_statek_async,
    tool,
)
from statek.agents import DialogAgent, SupervisedAgent
from statek.agents.agent import update_warmup_defs
from statek.chat_style import ChatStyle
from statek.executors.job import Job, JobStatus
from statek.model_pricing import get_model_pricing
from statek.prompt_config import load_prompt_files, make_system_prompt
from statek.task import (
    delegate_mute_dialog,
    delegate_mute_task,
    delegate_task,
    start_dialog,
    submit_new_job,
    submit_new_jobs_batch,
)

from statek_sim import text, tool_call

MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)
REPORTED = []


@tool
def work(items=None, **kwargs):
    """Work."""
    return "worked"


@tool
def break_it(**kwargs):
    """Break."""
    raise ValueError("no")


def send(body, media=None):
    """Talk to nobody."""


def report(context, error=None):
    REPORTED.append([context, type(error).__name__])


def create(role="clerk", *, prompt="You count.", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt(prompt),
        _tools=[work],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def caught(action):
    """Return the types by which an application can catch what `action` raises, and its result otherwise."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001
        known = (AttributeError, RuntimeError, TypeError, ValueError)
        return [kind.__name__ for kind in known if isinstance(error, kind)]


@MANY
@pytest.mark.not_what_was_sent
@pytest.mark.parametrize("count", [None, [1, 2]], ids=str)
@pytest.mark.parametrize("style", [None, "DIRECT", "MARKDOWN", "MD_DIALOG", "CONSOLE"])
def test_times_and_sizes_of_requests(statek_app, facts, style, count):
    metadata = {"MODEL": "openai/gpt-4o"} | ({} if style is None else {"CHAT_STYLE": style})
    agent = DialogAgent(send, tools=[work, break_it], role="clerk", _metadata=metadata)
    agent.update_system_prompt("You count many things.")
    warmup = ["print('warm enough')", "#STATEK:hidden=True\nprint('secret')", "work() #STATEK: as tool"]
    job = statek_app.create_job(agent, warmup_code=warmup, message="Hello there my friend")

    def measure():
        return [
            [[str(time), seconds] for time, seconds in job.get_llm_response_times()],
            list(job.get_llm_step_sizes()),
            job.get_llm_initial_step_size(),
            job.tokens_per_sec(),
            [[str(time), seconds] for time, seconds in job.get_response_times()],
            type(job.last_chat_log_item).__name__,
            job.has_more_warmup_blocks(),
            job.logs_path,
        ]

    replies = [
        "print('x' * 40)",
        text("something\n```python\nprint('x' * 40)\n```"),
        "1/0",
        tool_call("work", items="ä"),
        tool_call("break_it"),
        tool_call("work", items=count),
        text("done") if style == "DIRECT" else "exit('done')",
    ]
    facts["fresh"] = measure()
    statek_app.script(clerk=replies[3:] if style == "DIRECT" else replies)
    statek_app.run()
    facts.attempt("ran", measure)
    job.push_user_message("again")
    facts.attempt("called again", measure)


@MANY
@pytest.mark.parametrize("status", ["READY", "WARMING_UP", "STARTED", "SUSPENDED", "DONE"])
@pytest.mark.parametrize("ran", [False, True])
def test_a_status_that_is_set(statek_app, facts, status, ran):
    job = create_new_job(create())
    runs_again = status != "SUSPENDED" and (status != "DONE" and not (ran and status == "STARTED"))
    statek_app.script(clerk=["x = 1", "exit(1)"] * ran + ["exit(2)"] * runs_again)
    if ran:
        statek_app.run()
    facts.attempt("set", lambda: job.set_status(JobStatus[status]))
    facts["now"] = str(job.status)
    statek_app.run()
    facts["later"] = str(job.status)
    facts["found"] = [len(list(db0.find(Job, each))) for each in JobStatus.values()]


def test_the_latest_input_is_bound_by_hand(statek_app, facts):
    REPORTED.clear()
    agent = create()
    agent.context["critical_error_handler"] = report
    job = create_new_job(agent)
    job.bind_critical_error_context("first")
    job.bind_critical_error_context("second")
    facts["bound"] = len(job.error_handlers)
    job.notify_handlers(ValueError("x"))
    facts["reported"] = list(REPORTED)


@pytest.mark.parametrize("value", [None, 5, "x", {}, []], ids=str)
def test_wrong_arguments(statek_app, facts, value):
    agent = create()
    job = create_new_job(agent)
    facts["created"] = caught(lambda: create_new_job(value))
    facts["by the test"] = caught(lambda: statek_app.create_job(value))
    facts["delegated"] = caught(lambda: delegate_task(value))
    facts["talking"] = caught(lambda: start_dialog(value, "hello"))
    facts["submitted"] = caught(lambda: submit_new_job(value))
    facts["many"] = caught(lambda: submit_new_jobs_batch(value, [{}]))
    facts["handler"] = caught(lambda: job.add_error_handler(value, None))
    facts["variables"] = caught(lambda: create_new_job(agent, value).status == JobStatus.READY)
    wrong = SupervisedAgent("wrong", value, [], _metadata={"MODEL": "a/b"})
    facts.attempt("prompt", lambda: wrong.system_prompt("M"))


SETTINGS = [
    {"max_turns": -1},
    {"max_turns": "x"},
    {"max_turns": "5"},
    {"max_turns": None},
    {"max_turns": 1.5},
    {"max_turns": 2.0},
    {"max_token_usage": 10**30},
    {"limit_extension_per_completion": "x"},
    {"limit_extension_per_completion": -1},
    {"chat_style": "bogus"},
    {"chat_style": ChatStyle.DIRECT},
    {"log_level": "x"},
    {"statek_default_difficulty": "x"},
    {"default_llm_api_provider": None},
    {"unknown": 1},
]


@pytest.mark.parametrize("given", SETTINGS, ids="-".join)
def test_settings_in_code(statek_app, facts, given):
    facts["settings"] = caught(lambda: [str(getattr(StatekSettings(**given), name, None)) for name in given])
    limits = {"max_turns": 1, "max_exceptions": 2, "max_consecutive_exceptions": 3, "max_token_usage": 4}
    known = {name: value for name, value in given.items() if name.startswith(("max_", "limit_"))}
    facts["harness"] = caught(lambda: [str(getattr(LLM_Harness(**limits | known), name)) for name in limits])


VARIABLES = [
    ("STATEK_MAX_TURNS", "7"),
    ("STATEK_MAX_TURNS", ""),
    ("STATEK_MAX_TURNS", "-1"),
    ("MAX_TURNS", "8"),
    ("MAX_TURNS", "x"),
    ("STATEK_LIMIT_EXTENSION_PER_COMPLETION", "0.5"),
    ("STATEK_CHAT_STYLE", "markdown"),
    ("STATEK_CHAT_STYLE", "bogus"),
    ("STATEK_LOG_LEVEL", "info"),
    ("STATEK_DEFAULT_DIFFICULTY", "x"),
    ("DEFAULT_LLM_API_PROVIDER", "OPENAI"),
    ("STATEK_PYTHON_SANDBOX_MODE", "OFF"),
    ("STATEK_UNKNOWN", "x"),
]


@pytest.mark.parametrize("variable", VARIABLES, ids="=".join)
@pytest.mark.parametrize("given", [{}, {"max_turns": 3, "log_level": "ERROR"}], ids=str)
def test_settings_in_the_environment(statek_app, facts, monkeypatch, variable, given):
    monkeypatch.setenv(*variable)

    def made():
        settings = StatekSettings(**given)
        return [
            settings.max_turns,
            settings.limit_extension_per_completion,
            str(settings.chat_style),
            settings.log_level,
            settings.statek_default_difficulty,
            settings.default_llm_api_provider,
            settings.python_sandbox_mode,
        ]

    facts["made"] = caught(made)
    facts["in use"] = [get_statek_settings().max_turns, str(get_statek_settings().chat_style)]


@MANY
@pytest.mark.parametrize(
    "given",
    [
        {"chat_style": ChatStyle.MARKDOWN},
        {"xml_box_console": "OUT"},
        {"statek_default_difficulty": "H"},
        {"default_llm_api_provider": "OPENAI"},
        {"max_turns": 0},
        {"python_sandbox_max_ast_nodes": 6},
        {"python_sandbox_allowed_imports": "math"},
        {"python_sandbox_mode": "off"},
    ],
    ids="-".join,
)
def test_settings_in_use(statek_app, facts, given):
    init(StatekSettings(**given))
    job = create_new_job(create(MODEL="L:a/b,M:c/d,H:e/f"))
    statek_app.script(clerk=["print('hi')\n[1, 2]", "import json\njson.dumps([1])", "exit(1)"])
    statek_app.run()
    facts["models"] = [request.model for request in statek_app.requests]
    facts["job"] = [str(job.job_def.chat_style), str(job.get_current_difficulty()), job.job_def.provider]
    facts["settings"] = [str(getattr(get_statek_settings(), name)) for name in given]
    facts["same"] = get_statek_settings() is get_statek_settings()
    facts["is one"] = isinstance(get_statek_settings(), StatekSettings)
    facts["limit"] = get_llm_harness().max_turns


def test_a_worker_with_settings(statek_app, facts):
    job = create_new_job(create())
    left = [1]
    queue = {create("other"): lambda: left.pop() if left else 0}
    statek_app.script(clerk=["print(1)", "exit(1)"], other=["exit(2)"])
    settings = StatekSettings(chat_style=ChatStyle.MARKDOWN)
    start_statek([job.agent, *queue], settings=settings, task_queue_size_funcs=queue)
    facts["style"] = str(job.job_def.chat_style)


def test_a_worker_inside_an_event_loop(statek_app, facts):
    job = create_new_job(create())
    statek_app.script(clerk=["exit(1)"])

    async def main():
        facts.attempt("sync", lambda: start_statek([job.agent]))
        await start_statek_async([job.agent])

    asyncio.run(main())
    facts["status"] = str(job.status)


@pytest.mark.statek(limits={"max_turns": 9})
def test_harnesses_of_its_own(statek_app, facts):
    job = create_new_job(create())
    statek_app.script(clerk=["x = 1", "exit(1)"])
    statek_app.run()
    for number, limits in enumerate(
        [(1, None, None, None), (None, None, -1, None), (5, 3, 1, "x"), (0, 0, 0, 0)]
    ):
        harness = LLM_Harness(*limits)
        facts.attempt(f"before {number}", lambda harness=harness: harness.check_before_step(job))
        facts.attempt(f"after {number}", lambda harness=harness: harness.check_after_step(job))


@db0.memo
class Order:
    def __init__(self, number):
        self.number = number


@tool
def mark(tag: str, **kwargs):
    """Mark the job."""
    db0.tags(get_current_job()).add(tag)
    return len(list(db0.find(Job, tag)))


def test_jobs_with_tags_of_its_own(statek_app, facts):
    clerk, order = create(), Order(1)
    clerk.append_tool(mark)
    jobs = [create_new_job(clerk), create_new_job(create("other")), create_new_job(clerk)]
    db0.tags(jobs[0], order).add("urgent")
    db0.tags(jobs[0], jobs[1]).add(["billing"])
    db0.tags(jobs[2]).add(db0.as_tag(order))
    db0.tags(order).add(db0.as_tag(jobs[1]))

    def look():
        queries = {
            "urgent": (Job, "urgent"),
            "urgent order": (Order, "urgent"),
            "billing, ready": (Job, "billing", JobStatus.READY),
            "either": (Job, ["urgent", "billing"]),
            "not billing": (Job, db0.no("billing")),
            "of the order": (Job, db0.as_tag(order)),
            "of the job": (db0.as_tag(jobs[1]),),
            "every job": (Job, "STATEK_JOB"),
            "unknown": (Job, "unknown"),
            "of the agent": (Job, db0.as_tag(clerk), "urgent"),
            "marked": (Job, "hot"),
        }
        return {
            name: [jobs.index(found) if found in jobs else "order" for found in db0.find(*query)]
            for name, query in queries.items()
        }

    facts["before"] = look()
    statek_app.script(clerk=["print(mark('hot'))\nexit(1)"] * 2, other=["exit(2)"])
    statek_app.run()
    facts["ran"] = look()
    db0.tags(jobs[0]).remove("urgent", "billing")
    facts["left"] = look()


def test_providers_of_requests(statek_app, facts):
    agents = [
        create("plain"),
        create("by name", PROVIDER="OPENAI"),
        create("by model", MODEL="groq/meta/llama"),
        create("other wire", PROVIDER="CLAUDEAI", MODEL="anthropic/claude"),
        create("by level", MODEL="L:a/b,M:mistral/c/d,H:e/f"),
    ]
    statek_app.script(**{agent.role: ["exit(1)"] for agent in agents})
    for agent in agents:
        create_new_job(agent)
    statek_app.run()
    facts["providers"] = [[request.role, request.provider, request.wire] for request in statek_app.requests]


@pytest.mark.not_what_was_sent
@pytest.mark.parametrize(
    "delegate",
    [delegate_task, delegate_mute_task, delegate_mute_dialog],
    ids=["task", "mute task", "mute dialog"],
)
def test_what_models_read_about_delegation(statek_app, facts, delegate):
    agent = create(CHAT_STYLE="DIRECT", LLM_TOOLS_SCOPE="ALL")
    agent.append_tool(delegate)
    statek_app.script(clerk=["exit(1)"])
    create_new_job(agent)
    statek_app.run()
    tools = [each["function"] for each in statek_app.requests[0].tools]
    facts["schema"] = [each for each in tools if each["name"] == delegate.__name__]
    facts["documentation"] = docstr(delegate)


@tool
def give_up(**kwargs):
    """Ask for a better model."""
    get_current_job().panic()
    return "as you like"


NAMES = [
    "console_pos",
    "timestamp",
    "tool_log",
    "request_difficulty",
    "previous_difficulty",
    "difficulty",
    "cumulative_token_usage",
    "message",
    "warmup_block_num",
]


@MANY
@pytest.mark.parametrize("style", ["DIRECT", "MARKDOWN", "MD_DIALOG"])
def test_what_a_chat_log_keeps_of_a_raised_difficulty(statek_app, facts, style):
    metadata = {"MODEL": "L:a/b,M:c/d,H:e/f", "DEFAULT_DIFFICULTY": "L", "CHAT_STYLE": style}
    agent = DialogAgent(send, tools=[work, give_up], role="clerk", _metadata=metadata)
    agent.update_system_prompt("You count.")
    job = create_new_job(agent, warmup_code="print('warm')")
    job.push_user_message("hello")
    job.panic()
    job.push_user_message("please")
    statek_app.at(0, lambda: job.send_notification("news"))
    end = text("bye") if style == "DIRECT" else "exit('bye')"
    statek_app.script(clerk=[tool_call("work"), tool_call("give_up"), end, end])
    statek_app.run()
    job.send_notification("more")
    facts["log"] = [
        item
        if isinstance(item, str)
        else [type(item).__name__, {name: str(getattr(item, name, "none")) for name in NAMES}]
        for item in job.chat_log
    ]
    facts["notifications"] = [[call, item.message] for call, item in job.iter_notification_log_items()]
    facts["last"] = type(job.last_chat_log_item).__name__
    facts["granted"] = [job.difficulty_token_extension, str(job.get_current_difficulty())]
    statek_app.script(clerk=[end])
    statek_app.run()
    facts["models"] = [request.model for request in statek_app.requests]


def requests_of(app):
    return [[request.model, [message["content"] for message in request.messages]] for request in app.requests]


ASSIGNED = {
    "style": {"chat_style": ChatStyle.MARKDOWN, "xml_box_console": "out"},
    "difficulty": {"statek_default_difficulty": "H"},
    "provider": {"default_llm_api_provider": "OPENAI"},
    "no effect": {"log_level": "INFO", "statek_rpc_port": 1, "default_acl_str": "GRANT"},
}


@MANY
@pytest.mark.parametrize("given", ASSIGNED.values(), ids=ASSIGNED)
@pytest.mark.parametrize("first", ["init", "assign"])
@pytest.mark.parametrize("existing", [True, False], ids=["old job", "new job"])
def test_assigned_settings(statek_app, facts, given, first, existing):
    if first == "init":
        init(StatekSettings())
    job = create_new_job(create(MODEL="L:a/b,M:c/d,H:e/f")) if existing else None
    for name, value in given.items():
        setattr(get_statek_settings(), name, value)
    job = job or create_new_job(create(MODEL="L:a/b,M:c/d,H:e/f"))
    statek_app.script(clerk=[text("```python\nprint('hi')\n```"), "exit(1)"])
    facts["provider"] = job.job_def.provider
    facts.attempt("run", lambda: statek_app.run().settled)
    facts["style"] = [str(job.job_def.chat_style), str(job.get_current_difficulty())]
    facts["requests"] = requests_of(statek_app)


@MANY
def test_a_sandbox_setting_assigned_after_init(statek_app, facts):
    init(StatekSettings())
    get_statek_settings().python_sandbox_max_ast_nodes = 6
    create_new_job(create())
    statek_app.script(clerk=["print([1, 2, 3, 4, 5])", "exit(1)"])
    statek_app.run()
    init()
    create_new_job(create())
    statek_app.script(clerk=["print([1, 2, 3, 4, 5])", "exit(1)"])
    statek_app.run()


FILE = (
    "# MODEL: openai/from-file\n# TEMPERATURE: 0.5\n# DESCRIPTION: Helps.\n# System Prompt\nYou are {who}.\n"
)


@pytest.mark.parametrize("way", ["init", "assign", "start", "missing folder", "prompts", "assigned prompts"])
def test_prompt_files(statek_app, facts, tmp_path, way):
    (tmp_path / "clerk.md").write_text(FILE)
    folder = str(tmp_path / "nowhere" if way == "missing folder" else tmp_path)
    if way == "assign":
        get_statek_settings().prompt_files_dir = folder
    elif way in ("init", "missing folder"):
        init(StatekSettings(prompt_files_dir=folder))
    elif way == "prompts":
        init(StatekSettings(prompt_defs=load_prompt_files(folder)))
    elif way == "assigned prompts":
        get_statek_settings().prompt_defs = load_prompt_files(folder)
    agent = SupervisedAgent("clerk", None, [], _metadata={"MODEL": "openai/old"})
    job = create_new_job(agent, who="Zed")
    statek_app.script(clerk=["exit(1)"])
    if way == "start":
        start_statek([agent], settings=StatekSettings(prompt_files_dir=folder))
    statek_app.run()
    facts["requests"] = requests_of(statek_app)
    facts["agent"] = [agent.description, dict(agent._metadata), str(job.status)]
    facts["prompt"] = str(get_statek_settings().get_prompt_def("clerk"))
    facts["none"] = get_statek_settings().get_prompt_def("nobody")


@pytest.mark.parametrize("changed", [None, "print('other')"])
def test_files_of_warmup_code(statek_app, facts, tmp_path, changed):
    (tmp_path / "clerk.py").write_text("print('from file')\n")
    (tmp_path / "nobody.py").write_text("print('never')\n")
    agent, left = create(), [1]
    if changed:
        agent.update_warmup_def(changed)
    statek_app.script(clerk=["exit(1)"])
    start_statek(
        [agent],
        settings=StatekSettings(warmup_defs_dir=str(tmp_path)),
        task_queue_size_funcs={agent: lambda: left.pop() if left else 0},
    )
    facts["warmup"] = agent.warmup_def.warmup_code
    facts["requests"] = requests_of(statek_app)
    (tmp_path / "clerk.py").write_text("print('changed')\n")
    update_warmup_defs(tmp_path)
    facts["changed"] = agent.warmup_def.warmup_code


PRICES = """PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M
OPENAI,gpt-4o,,1,,2
OPENAI,gpt-4o-mini,,x,,2
"""


def test_files_of_prices(statek_app, facts, tmp_path):
    (tmp_path / "prices.csv").write_text(PRICES)
    init(StatekSettings(statek_model_info_dir=str(tmp_path)))
    job = create_new_job(create(MODEL="openai/gpt-4o"))
    facts["prices"] = [str(job.usage.pricing.input_price_per_M), job.usage.pricing.is_valid]
    facts["skipped"] = get_model_pricing("OPENAI", "gpt-4o-mini", no_create=True) is None
    statek_app.script(clerk=["exit(1)"])
    statek_app.run()


def test_a_subclass_of_the_settings(statek_app, facts, monkeypatch):
    class Settings(StatekSettings):
        shop: str = "none"
        size: int = 1

    monkeypatch.setenv("SHOP", "here")
    init(Settings(size=3))
    settings = get_statek_settings()
    facts["own"] = [settings.shop, settings.size, type(settings).__name__]


@pytest.mark.parametrize("error", ["definition", "queue size"])
def test_a_loop_that_fails(statek_app, facts, error):
    def size():
        if error == "queue size":
            raise KeyError("no queue")
        return 1

    agent, other = create(), create("other")
    agent.update_warmup_def("1/0")
    facts.attempt("loop", lambda: start_statek([agent], task_queue_size_funcs={agent: size}))
    job = create_new_job(other)
    statek_app.script(other=["exit(1)", "exit(2)"])
    outcome = statek_app.run()
    facts["then"] = [str(job.status), outcome.settled, outcome.worker]
    again = create_new_job(other)
    facts.attempt("another loop", lambda: start_statek([other]))
    facts["at last"] = str(again.status)


def test_a_definition_with_errors_and_no_queue(statek_app, facts):
    agent = create()
    agent.update_warmup_def("1/0")
    job = create_new_job(agent)
    statek_app.run()
    facts["errors"] = job.job_def.has_errors()
    facts.attempt("loop", lambda: start_statek([agent]))
    facts["cleared"] = job.job_def.has_errors()
    create_new_job(agent)
    facts.attempt("second loop", lambda: start_statek([agent]))


@pytest.mark.parametrize("model", [None, "a"], ids=str)
def test_a_model_without_a_value(statek_app, facts, model):
    agent = SupervisedAgent("plain", make_system_prompt("x"), [], _metadata={"MODEL": model})
    facts.attempt("created", lambda: str(create_new_job(agent).status))
    facts.attempt("defined", lambda: agent.create_job_def().model)
    facts.attempt("loop", lambda: start_statek([agent]))


LEFT, ASKED = [], []


@tool
def take(**kwargs):
    """Take."""
    ASKED.append(f"take {LEFT[0]}")
    return LEFT.pop(0)


def waiting():
    ASKED.append(len(LEFT))
    return len(LEFT)


@pytest.mark.parametrize("most", [1, 2, 3, 100])
@pytest.mark.parametrize("by_itself", [True, False], ids=["loop", "fleet"])
def test_concurrency(statek_app, facts, most, by_itself):
    ASKED.clear()
    LEFT[:] = [1, 2, 3, 4]
    agent = SupervisedAgent(
        "clerk", make_system_prompt("Count."), [take], _metadata={"MODEL": "openai/gpt-4o"}
    )
    agent.update_warmup_def("n = take()")
    agents = [agent] if by_itself else [agent, create("other")]
    statek_app.script(clerk=["x = 1", "exit(n)"] * 4)
    start_statek(agents, max_concurrency=most, task_queue_size_funcs={agent: waiting})
    facts["asked"] = [one for at, one in enumerate(ASKED) if at == 0 or one != ASKED[at - 1]]


def test_no_concurrency(statek_app, facts):
    facts.attempt("loop", lambda: start_statek([create()], max_concurrency=0))


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o"])
@pytest.mark.parametrize("metadata", [{}, {"PROVIDER": "GROQ"}], ids=str)
def test_a_workers_provider(statek_app, facts, model, metadata):
    agent = create(MODEL=model, **metadata)
    job = create_new_job(agent)
    statek_app.script(clerk=["exit(1)"] * 3)
    start_statek([agent], provider="OPENAI")
    facts["provider"] = job.job_def.provider
    get_statek_settings().default_llm_api_provider = "MISTRAL"
    create_new_job(agent)
    statek_app.run()
    create_new_job(agent)
    start_statek([agent])
    facts["requests"] = [[request.provider, request.model] for request in statek_app.requests]


@MANY
def test_a_provider_assigned_between_jobs(statek_app, facts):
    agent = create(MODEL="some/gpt-4o")
    statek_app.script(clerk=["exit(1)"] * 2)
    for provider in ("OPENAI", "OPENROUTER"):
        get_statek_settings().default_llm_api_provider = provider
        create_new_job(agent)
        statek_app.run()
    facts["requests"] = [[request.provider, request.model] for request in statek_app.requests]
