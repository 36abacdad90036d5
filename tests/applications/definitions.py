"""An office whose jobs are of the same definition, or only look so."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import create_new_job, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.executors.job import Job, JobDef, JobStatus, parse_warmup_code
from statek.prompt_config import make_system_prompt
from statek.utils import CodeBlock

WARMUPS = {
    "nothing": None,
    "blank": "  \n",
    "code": "x = 1",
    "two blocks": "x = 1\n# ----------\ny = 2",
    "sequence": ["x = 1", "y = 2"],
    "hidden": "#STATEK: hidden = True\nx = 1",
    "not hidden": "#STATEK: hidden = False\nx = 1",
    "labelled": "#STATEK: label = 'x'\nx = 1",
    "labelled twice": "#STATEK: label = 'x'\n#STATEK: kind = 2\nx = 1",
    "hidden and code": "#STATEK: hidden = True\nx = 1\n# ----------\ny = 2",
    "two hidden": "#STATEK: hidden = True\nx = 1\n# ----------\n#STATEK: hidden = True\ny = 2",
    "call": "look() #STATEK: as tool",
    "call with a number": "look(1) #STATEK: as tool",
    "call with numbers": "look(1, 2.5) #STATEK: as tool",
    "call with a text": "look('a') #STATEK: as tool",
    "call with a name": "look(a) #STATEK: as tool",
    "call with None": "look(None) #STATEK: as tool",
    "call with True": "look(True) #STATEK: as tool",
    "call with a list": "look([1]) #STATEK: as tool",
    "call with an empty list": "look([]) #STATEK: as tool",
    "call with a tuple": "look((1, 2)) #STATEK: as tool",
    "call with a mapping": "look({'a': 1}) #STATEK: as tool",
    "call with a keyword": "look(a='b') #STATEK: as tool",
    "call with a keyword number": "look(a=1) #STATEK: as tool",
    "call with two keywords": "look(a=1, b='x') #STATEK: as tool",
    "call with a keyword list": "look(a=[1]) #STATEK: as tool",
    "call with both": "look(1, a='b') #STATEK: as tool",
    "two calls": "look() #STATEK: as tool\nlook() #STATEK: as tool",
    "one of two calls": "look() #STATEK: as tool\nlook(1) #STATEK: as tool",
    "label of None": "#STATEK: label = None\nx = 1",
    "label of a number": "#STATEK: label = 1.5\nx = 1",
    "code and call": "x = 1\nlook() #STATEK: as tool",
    "hidden call": "#STATEK: hidden = True\nlook() #STATEK: as tool",
    "block and call": "x = 1\n# ----------\nlook() #STATEK: as tool",
    "label alone": "#STATEK: label = 'x'",
}


@tool
def look(*args, **kwargs):
    """Look."""
    return "seen"


def send(body, media=None):
    """Answer."""


def same(one, other):
    """Whether two jobs have one definition: equal definitions need not be one."""
    return db0.uuid(one.job_def) == db0.uuid(other.job_def)


def create(**metadata):
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You work."),
        _tools=[look],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.mark.parametrize("kind", WARMUPS)
def test_warmup_of_a_job(statek_app, facts, kind):
    agent = create()
    first, second = (create_new_job(agent, warmup_code=WARMUPS[kind]) for _ in range(2))
    facts["shared"] = same(first, second)
    facts["equal"] = first.job_def == second.job_def
    first.job_def.set_error(ValueError("no"))
    facts["errors"] = [len(list(job.job_def.get_errors())) for job in (first, second)]
    third = create_new_job(agent, warmup_code=WARMUPS[kind])
    facts["third"] = [same(third, first), same(third, second)]


@pytest.mark.parametrize("kind", WARMUPS)
def test_warmup_of_an_agent(statek_app, facts, kind):
    agent = create()
    agent.update_warmup_def(WARMUPS[kind])
    first, second = create_new_job(agent), create_new_job(agent, warmup_code="z = 3")
    third, fourth = create_new_job(agent), create_new_job(agent, warmup_code="z = 3")
    facts["shared"] = [same(first, third), same(second, fourth)]


PARAMS = {
    "text": lambda: {"topic": "x"},
    "list": lambda: {"rows": [1, 2]},
    "dict": lambda: {"rows": {"a": 1, "b": [2]}},
    "tuple": lambda: {"rows": (1, "a")},
    "set": lambda: {"rows": {1, 2}},
    "none": lambda: {"topic": None},
    "number": lambda: {"n": 1.5},
    "empty list": lambda: {"rows": []},
}


@pytest.mark.parametrize("kind", PARAMS)
def test_parameters_of_a_job(statek_app, facts, kind):
    agent = create()
    first, second = (create_new_job(agent, **PARAMS[kind]()) for _ in range(2))
    facts["shared"] = same(first, second)
    facts["with none"] = same(first, create_new_job(agent))


@pytest.mark.parametrize("model", ["gpt-4o", "a/b", "a/b/c", "L:a,MH:b", "LMH:a", " gpt-4o ", "a/b[/rl=5]"])
def test_models(statek_app, facts, model):
    agent = create(MODEL=model)
    first, second = create_new_job(agent), create_new_job(agent)
    facts["shared"] = same(first, second)
    facts["equal"] = first.job_def == second.job_def
    third, fourth = create_new_job(agent, topic="x"), create_new_job(agent, topic="x")
    facts["with parameters"] = [third.job_def == fourth.job_def, third.job_def == first.job_def]
    facts["found"] = len(list(db0.find(JobDef, db0.as_tag(agent))))


def test_metadata_changes(statek_app, facts):
    agent = create()
    first = create_new_job(agent)
    agent.update_metadata({"MODEL": "openai/gpt-4o", "TEMPERATURE": "0.5"})
    second = create_new_job(agent)
    agent.update_metadata({"MODEL": "openai/gpt-5"})
    third = create_new_job(agent)
    facts["shared"] = [same(first, second), same(second, third)]
    facts["equal"] = [first.job_def == second.job_def, second.job_def == third.job_def]
    facts["kept"] = [dict(job.job_def.metadata) for job in (first, second, third)]


@pytest.mark.parametrize("locale", [None, "pl", "en"])
def test_locales(statek_app, facts, locale):
    agent = create()
    first, second = (create_new_job(agent, locale=locale) for _ in range(2))
    facts["shared"] = same(first, second)
    facts["equal"] = first.job_def == second.job_def
    child = create_new_job(agent, parent_job=first)
    facts["child"] = [same(child, first), str(child.job_def.locale)]


def test_definitions_are_found(statek_app, facts):
    one, other = create(), SupervisedAgent("other", make_system_prompt("x"), [], _metadata={"MODEL": "a/b"})
    jobs = [create_new_job(one), create_new_job(one, topic="x"), create_new_job(other), create_new_job(one)]
    facts["all"] = sorted(found.agent.role for found in db0.find(JobDef))
    facts["of one"] = [dict(found.job_params or {}) for found in db0.find(JobDef, db0.as_tag(one))]
    facts["jobs of one"] = [jobs.index(job) for job in db0.find(Job, db0.as_tag(one))]
    facts["jobs of a definition"] = [jobs.index(job) for job in db0.find(Job, db0.as_tag(jobs[0].job_def))]
    facts["ready"] = [jobs.index(job) for job in db0.find(Job, db0.as_tag(one), JobStatus.READY)]
    facts["fetched"] = db0.fetch(db0.uuid(jobs[1].job_def)) == jobs[1].job_def
    facts.attempt("hash", lambda: len({job.job_def for job in jobs}))
    for word in ("no", "never", "not now"):
        jobs[0].job_def.set_error(ValueError(word))
    facts["errors"] = [error.error_message for error in jobs[3].job_def.get_errors()]
    facts.attempt("number of errors", lambda: len(jobs[0].job_def.get_errors()))
    made = one.create_job_def(topic="y")
    facts["made"] = [made == jobs[0].job_def, len(list(db0.find(JobDef, db0.as_tag(one))))]


def test_dialogs(statek_app, facts):
    host = DialogAgent(send, role="host", _metadata={"MODEL": "openai/gpt-4o"})
    first, second = create_new_job(host), create_new_job(host)
    third, fourth = (create_new_job(host, chat_style="DIRECT") for _ in range(2))
    facts["shared"] = [same(one, other) for one, other in ((first, second), (first, third), (third, fourth))]


MANY = pytest.mark.statek(limits={"max_turns": 9, "max_token_usage": None})


@MANY
@pytest.mark.parametrize(
    "warmup", ["1/0", "#STATEK: hidden = True\n1/0", "look() #STATEK: as tool\n1/0", "x=1\n# ----------\n1/0"]
)
def test_errors_are_those_of_the_definition(statek_app, facts, warmup):
    agent = create()
    jobs = [create_new_job(agent, warmup_code=warmup) for _ in range(3)]
    statek_app.run()
    facts["errors"] = [len(list(job.job_def.get_errors())) for job in jobs]
    facts["status"] = [str(job.status) for job in jobs]


def told(block):
    if isinstance(block, str):
        return block
    calls = block.get_tool_calls(lambda call: True) or []
    told_calls = [[call.id, call.func_name, list(call.args or ()), dict(call.kwargs or {})] for call in calls]
    return [block.code, told_calls, dict(block.metadata or {})]


MISTAKES = {
    "no metadata": "#STATEK: hidden",
    "metadata of a kind": "#STATEK: label = [1]",
    "no call": "x #STATEK: as tool",
    "no code": "x = #STATEK: as tool",
    "a short line": "x = 1\n# ---------\ny = 2",
    "a line alone": "# ----------",
    "empty sequence": [],
    "blank sequence": [" ", "\n"],
    "code and a call": "x = 1\nlook(x) #STATEK: as tool\ny = 2",
    "no code but metadata": "#STATEK: label = 1",
    "blocks": lambda: [CodeBlock("x = 1"), CodeBlock(""), "y = 2"],
}


@pytest.mark.parametrize("name", [*WARMUPS, *MISTAKES])
def test_parsed_warmup_code(statek_app, facts, name):
    def parsed():
        given = {**WARMUPS, **MISTAKES}[name]
        code = parse_warmup_code(given() if callable(given) else given)
        return [told(block) for block in code] if isinstance(code, list) else code and told(code)

    facts.attempt("parsed", parsed)
