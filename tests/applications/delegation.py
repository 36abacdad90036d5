"""A travel agency that starts jobs with code of its own, and variables of its own in it."""
# mypy: ignore-errors

import asyncio

import dbzero as db0
import pytest
from statek import create_new_job, error_handler, get_current_job, subtask, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.executors.utils import AgentLoopDef, run_agentic_fleet, run_agentic_loop
from statek.prompt_config import make_system_prompt
from statek.statek_client_api import StatekClientAPI
from statek.task import (
    copy_locals,
    delegate_mute_dialog,
    delegate_mute_task,
    delegate_task,
    get_referenced_locals,
    start_dialog,
    submit_new_job,
    submit_new_jobs_batch,
)


@db0.memo
class Trip:
    def __init__(self, town):
        self.town = town

    def __llm_repr__(self):
        return f"trip to {self.town}"


@db0.memo(singleton=True)
class Agency:
    def __init__(self):
        self.agents = {}


@tool
def plan(town: str, **kwargs):
    """Have a trip planned."""
    trip = Trip(town)
    days = 3
    unused = "x"
    return delegate_task(
        Agency().agents["planner"],
        warmup_code="print(trip, days, tool_of_mine if False else 1)",
        parent_job=get_current_job(),
    )


@tool
def book(town: str, **kwargs):
    """Have a trip booked."""
    trip = Trip(town)
    job = create_new_job(
        Agency().agents["planner"],
        {"days": 9},
        warmup_code="print(trip)\nprint(days)",
        parent_job=get_current_job(),
    )
    days = 1
    return days


def create(role, *tools, prompt="You plan."):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt(prompt),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.fixture
def boss(statek_app):
    Agency().agents["planner"] = create("planner")
    return create("boss", plan, book)


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)


@MANY
def test_variables_of_the_caller_are_there(statek_app, boss, facts):
    statek_app.script(
        boss=["r = plan('Rome')\nstatus, job = r\nprint(status)", "book('Oslo')", "exit(1)"],
        planner=["exit(trip.town)"] * 2,
    )
    statek_app.create_job(boss)
    statek_app.run()


def test_variables_of_a_test_are_there_too(statek_app, boss, facts):
    trip, name, message = Trip("Bonn"), "not this", "nor this"
    statek_app.script(planner=["exit(trip.town)", "exit(trip.town)", "exit(1)"])
    create_new_job(Agency().agents["planner"], warmup_code="print(trip)")
    statek_app.create_job(Agency().agents["planner"], warmup_code="print(trip, name)", name="second")
    create_new_job(
        Agency().agents["planner"], {"trip": Trip("Kiel")}, warmup_code=["print(trip)", "x = 1\nprint(x)"]
    )
    statek_app.run()


def test_what_is_not_read_is_not_copied(statek_app, boss, facts):
    trip, other = Trip("Bonn"), 5
    statek_app.script(planner=["exit(1)"])
    job = create_new_job(
        Agency().agents["planner"], warmup_code="other = 1\nprint(len([trip for trip in [1]]))"
    )
    facts["copied"] = sorted(dict(job.py_env.local_state))
    statek_app.run()


def test_warmup_that_cannot_be_read(statek_app, boss, facts):
    facts.attempt("syntax", lambda: create_new_job(Agency().agents["planner"], warmup_code="1 +"))
    facts.attempt(
        "marker",
        lambda: create_new_job(Agency().agents["planner"], warmup_code="x = plan('a') #STATEK: as tool"),
    )


def test_prompt_parameters(statek_app, boss, facts):
    agent = create("planner", prompt="Plan for {name}, {message}, {chat_style}; {town}.")
    statek_app.script(planner=["exit(1)"])
    job = create_new_job(agent, name="Ada", message="hi", chat_style="x", town="Rome", prompt="y")
    statek_app.run()
    facts["params"] = dict(job.job_def.job_params)
    facts.attempt("prompt", lambda: job.system_prompt())
    facts.attempt("missing", lambda: create_new_job(agent, name="Ada").system_prompt())


def test_ways_to_start(statek_app, boss, facts):
    planner = Agency().agents["planner"]
    statek_app.script(planner=["exit(n)"] * 5)
    submit_new_job(planner, {"n": 1})
    submit_new_jobs_batch(planner, [{"n": 2}, {"n": 3}])
    StatekClientAPI().submit_new_job(planner, {"n": 4})
    StatekClientAPI().submit_new_jobs_batch(planner, [{"n": 5}])
    statek_app.run()


CODES = [
    "print(a)\nb = c\nprint(b)",
    "for i in items:\n    total += i.price\nprint(total)",
    "f(x)\ny.z(w)\n(lambda q: q)(1)",
    "[n for n in names if n.ok]\n{k: v for k, v in pairs}",
    "with open_it(p) as g:\n    g.read()",
    "import re\nfrom math import pi\nprint(re, pi, tau)",
    "def helper(a=default):\n    return inner\nhelper()",
    "a.b = c\nd[e] = f\n(g, *h) = i",
    "x = (y := z) + y",
    "try:\n    t1\nexcept ValueError as e:\n    print(e)",
    "while going:\n    going = step",
    "print(f'{user.name}')",
]


@pytest.mark.parametrize("number", range(len(CODES)))
def test_names_that_code_reads(statek_app, facts, number):
    facts["names"] = list(get_referenced_locals(CODES[number]))
    copied = {}
    copy_locals(
        CODES[number],
        copied,
        {name: name for name in "abcdefghipqtwxyz"}
        | {"items": 1, "names": 2, "user": 3, "total": 4, "inner": 5},
    )
    facts["copied"] = sorted(copied)
    agent = create("planner")
    agent.update_warmup_def(CODES[number])
    facts["referenced"] = list(agent.referenced_locals)


@tool
def hand_on(**kwargs):
    """Start a job with every keyword of this call."""
    return create_new_job(Agency().agents["planner"], **kwargs)


@subtask
def order(**kwargs):
    """Start a subtask with every keyword of this call."""
    return create_new_job(Agency().agents["planner"], parent_job=get_current_job(), **kwargs)


def send(body, media=None):
    """Deliver nowhere."""


CALLS = {
    "delegate_task(planner, days=2)": [],
    "delegate_mute_task(planner)": [],
    "delegate_mute_dialog(planner, 'hello')": [],
    "hand_on()": [],
    "def call():\n    return delegate_task(planner)\ntask = call()": [],
    "task = order()": ["exit('planned')"],
}


@pytest.mark.parametrize("code", CALLS)
@pytest.mark.parametrize("kind", ["plain", "dialog"])
def test_the_context_of_a_call_is_no_parameter_of_a_job(statek_app, facts, code, kind):
    tools = [delegate_task, delegate_mute_task, delegate_mute_dialog, hand_on, order]
    Agency().agents["planner"] = planner = create("planner")
    if kind == "plain":
        boss = create("boss", *tools)
    else:
        boss = DialogAgent(send, tools=tools, role="boss", _metadata={"MODEL": "openai/gpt-4o"})
        boss.update_system_prompt(make_system_prompt("You lead."))
    statek_app.script(boss=[code, "exit('done')"], planner=CALLS[code])
    statek_app.create_job(boss, shared_vars={"planner": planner}, message="Begin.")
    statek_app.run()


@error_handler
def _give_back(trip, error=None):
    trip.town = "nowhere"


@tool(error_handler=_give_back)
def next_trip(**kwargs):
    """Take the next trip."""
    trip = Agency().agents["trips"].pop()
    return trip


def left():
    return len(Agency().agents["trips"])


def test_a_loop_has_warmup_code_of_its_own(statek_app, facts):
    Agency().agents["trips"] = [Trip("Oslo"), Trip("Rome")]
    agent = create("guide", next_trip)
    agent.update_warmup_def("print('never')")
    statek_app.script(guide=["exit(trip.town)"] * 2)
    asyncio.run(run_agentic_loop(agent, "trip = next_trip()\nprint(trip)", left, [], max_concurrency=1))
    prompt, *_, shown = statek_app.requests[0].messages
    facts["equal"] = statek_app.requests[0].messages == [prompt, statek_app.requests[0].messages[1], shown]


def test_loops_of_a_fleet_have_warmup_code_of_their_own(statek_app, facts):
    Agency().agents["trips"] = [Trip("Oslo")]
    guide, idle = create("guide", next_trip), create("idle")
    idle.update_warmup_def("print('never')")
    statek_app.script(guide=["exit(trip.town)"], idle=["exit('seen')"])
    loops = [
        AgentLoopDef(agent=guide, warmup_code="trip = next_trip()", task_queue_size_func=left),
        AgentLoopDef(agent=idle, warmup_code=None, task_queue_size_func=lambda: len(statek_app.jobs) == 1),
    ]
    asyncio.run(run_agentic_fleet(loops, [], max_concurrency=1))


def test_failing_warmup_code_of_a_loop_ends_it(statek_app, facts):
    Agency().agents["trips"] = trips = [Trip("Oslo"), Trip("Rome")]
    agent = create("guide", next_trip)
    loop = run_agentic_loop(agent, "trip = next_trip()\n1/0", left, [], max_concurrency=1)
    facts.attempt("ended", lambda: asyncio.run(loop))
    facts["towns"] = [trip.town for trip in trips]
