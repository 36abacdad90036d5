"""A clinic whose tools look at the job that calls them, and tests of those tools by themselves."""
# mypy: ignore-errors

from types import SimpleNamespace

import dbzero as db0
import pytest
from statek import (
    create_new_job,
    error_handler,
    get_current_agent,
    get_current_agent_name,
    get_current_job,
    tool,
)
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt
from statek.testing import statek_context
from statek.utils import (
    find_locals,
    perm_ctx_get,
    perm_ctx_set,
    perm_ctx_set_unique,
    statek_ctx_get,
    statek_ctx_set,
)


@db0.memo
class Patient:
    def __init__(self, name):
        self.name = name

    def __llm_repr__(self):
        return f"patient {self.name}"


@tool
def admit(name: str, **kwargs):
    """Admit somebody."""
    patient = Patient(name)
    perm_ctx_set(last=patient, count=perm_ctx_get("count", 0) + 1)
    return patient


@tool
def keep_frozen(**kwargs):
    """Keep a value that dbzero cannot store, as the first of a job."""
    perm_ctx_set(ward=frozenset([1]))


@tool
def last(**kwargs):
    """The last one admitted."""
    return [perm_ctx_get("last"), perm_ctx_get("count")]


@tool
def everybody(**kwargs):
    """Patients among the variables."""
    return sorted({one.name for one in find_locals(Patient)})


@tool
def named(name: str, **kwargs):
    """A variable by its name."""
    return list(find_locals(var_name=name))


@tool
def treat(patient: Patient, **kwargs):
    """Treat somebody.

    Args:
        patient (required): Whom.
    """
    return f"treated {patient.name}"


@tool
def who(**kwargs):
    """Who calls."""
    return [
        get_current_agent_name(),
        get_current_agent().role,
        get_current_job().agent.role,
        statek_ctx_get("agent").role,
    ]


@tool
def beside(**kwargs):
    """Keep something for this block."""
    before = statek_ctx_get("seen", "nothing")
    statek_ctx_set(seen="something")
    return before


@tool
def unique(**kwargs):
    """Keep values under names of their own."""
    return [perm_ctx_set_unique("fresh", 1), perm_ctx_set_unique("fresh", 2), perm_ctx_set_unique("taken", 3)]


def create(**metadata):
    return SupervisedAgent(
        role="nurse",
        _system_prompt=make_system_prompt("You care."),
        _tools=[admit, last, everybody, named, treat, who, beside, unique, keep_frozen],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


@MANY
def test_names_are_kept_with_the_job(statek_app, facts):
    statek_app.script(
        nurse=[
            "a = admit('Ada')\nb = admit('Bob')\nprint(last())",
            "print(last())\nprint(everybody())",
            "print(named('a'))\nprint(named('nobody'))",
            "print(treat('a'))\nprint(treat('zzz'))",
            "print(who())",
            "print(beside())\nprint(beside())",
            "print(beside())",
            "taken = 1\nprint(unique())",
            "perm_ctx_set(own=5)\nprint(statek_ctx_get('job') is not None)",
            "exit(1)",
        ]
    )
    job = statek_app.create_job(create())
    statek_app.run()
    facts["kept"] = sorted(dict(job.py_env.perm_ctx))
    facts["found"] = [one.name for one in job.find_locals(Patient)]
    facts["by name"] = [one.name for one in job.find_locals(var_name="a")]
    facts["kept by name"] = [one.name for one in job.find_locals(var_name="last")]
    facts["not kept"] = list(job.find_locals(var_name="last", ext_scan=False))


def test_a_job_without_kept_names(statek_app, facts):
    job = create_new_job(create())
    facts["perm"] = job.py_env.perm_ctx
    statek_app.script(nurse=["last()", "exit(1)"])
    statek_app.run()


def test_a_value_that_cannot_be_kept(statek_app, facts):
    job = create_new_job(create())
    statek_app.script(nurse=["keep_frozen()", "exit(1)"])
    statek_app.run()
    facts["console"] = list(job.py_env.console)
    facts["perm"] = sorted(dict(job.py_env.perm_ctx or {}))


def test_fake_jobs_stand_in_for_real_ones(statek_app, facts):
    fake = SimpleNamespace(
        py_env=SimpleNamespace(local_state={}, perm_ctx=None), job_def=SimpleNamespace(agent="the agent")
    )
    with statek_context(job=fake) as context:
        facts["context"] = [
            sorted(context),
            get_current_job() is fake,
            get_current_agent(),
            get_current_agent_name(),
        ]
        perm_ctx_set(a=1)
        facts["perm"] = [perm_ctx_get("a"), perm_ctx_get("b", 2)]
        facts.attempt("missing", lambda: perm_ctx_get("b"))
        statek_ctx_set(x=5)
        facts["beside"] = [statek_ctx_get("x"), statek_ctx_get("y", 7)]
        facts.attempt("missing beside", lambda: statek_ctx_get("y"))
        facts.attempt("wrong", lambda: statek_ctx_get())
        facts.attempt("tool", lambda: str(admit("Ada").name))
    facts["state"] = sorted(fake.py_env.local_state)
    with statek_context(agent=SimpleNamespace(role="x")):
        facts["agent only"] = [get_current_job(), get_current_agent().role, get_current_agent_name()]
    with statek_context(job=None, agent=None) as context:
        facts["nothing"] = [dict(context), get_current_job()]
    facts.attempt("perm outside", lambda: perm_ctx_set(a=1))
    facts.attempt("get outside", lambda: perm_ctx_get("a"))
    facts.attempt("get outside with default", lambda: perm_ctx_get("a", 4))
    facts.attempt("ctx outside", lambda: statek_ctx_set(a=1))
    facts.attempt("ctx get outside", lambda: statek_ctx_get("a"))
    facts["after"] = [get_current_job(), get_current_agent_name()]


def test_real_jobs_and_other_agents(statek_app, facts):
    job = create_new_job(create(), {"p": 1})
    other = create(MODEL="x/y")
    with statek_context(job=job, agent=other):
        facts["other"] = [get_current_agent() == other, get_current_job() == job]
        facts["admitted"] = admit("Ada").name
    facts["kept"] = sorted(dict(job.py_env.local_state))
    statek_app.script(nurse=["exit(p)"])
    statek_app.run()


@error_handler
def _undo(context, error=None):
    pass


@tool(error_handler=_undo)
def risky(**kwargs):
    """Needs care."""
    return "risk"


def test_handlers_are_registered_on_fakes(statek_app, facts):
    seen = []
    fake = SimpleNamespace(add_error_handler=lambda handler, context: seen.append(context), job_def=None)
    with statek_context(job=fake):
        risky()
    risky()
    facts["seen"] = seen


def test_helpers_in_the_context_of_an_agent(statek_app, facts):
    agent = create()
    agent.context["helper"] = lambda x: x * 2
    facts["kept"] = sorted(agent.context)
    statek_app.script(nurse=["print(helper(4))", "print(late('x'))", "exit(1)"])
    statek_app.create_job(agent)
    statek_app.at(0, lambda: agent.context.update(late=str.upper))
    statek_app.run()
