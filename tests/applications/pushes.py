"""A help line: events that become jobs and messages to jobs, both through push queues."""
# mypy: ignore-errors

import asyncio
from dataclasses import dataclass

import dbzero as db0
import pytest
from statek import create_new_job, error_handler, get_current_job, init, open_prefix, start_statek, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.executors.utils import (
    AgentLoopDef,
    process_agent_events,
    process_push_notifications,
    run_agentic_fleet,
    run_agentic_loop,
)
from statek.prompt_config import make_system_prompt
from statek.statek_client_api import StatekClientAPI
from statek.statek_push_queue import StatekPushQueue

from statek_sim import text

LOG = []
OPEN = ["statek-test"]
pytestmark = pytest.mark.filterwarnings("ignore")


@db0.memo
@dataclass
class Call:
    caller: str
    words: str = ""

    def __llm_repr__(self, **kwargs):
        return f"<call of {self.caller}>"


@error_handler
def _lost(context, error=None):
    LOG.append(f"lost {context}: {type(error).__name__}")


@tool
def forward(event, **kwargs):
    """Put an event into the queue of this agent."""
    StatekPushQueue().push_to_agent_queue(get_current_job().agent, event)
    return "forwarded"


def said(body, media=None):
    """Talk to the caller."""
    LOG.append(body)


def create(role="desk", warmup="print('received:', event)", *tools, **metadata):
    agent = SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You answer calls."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )
    agent.update_warmup_def(warmup)
    return agent


@pytest.fixture(autouse=True)
def _nothing_logged():
    LOG.clear()


EVENTS = {
    "a dict": {"type": "ticket", "lines": [1, {"k": "v"}], "none": None},
    "a list": [1, "two"],
    "a tuple": (1, ("two", None)),
    "a string": "help!",
    "a number": 4.5,
    "none": None,
}


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_becomes_a_job(statek_app, facts, kind):
    agent, queue = create(), StatekPushQueue()
    statek_app.script(desk=["print(event)\nevent", "exit([event])"])
    queue.push_to_agent_queue(agent, EVENTS[kind])
    facts["waits"] = [queue.has_agent_events(agent), queue.is_empty()]
    start_statek([agent], push_queues=[queue], max_concurrency=10)
    facts["waits later"] = queue.has_agent_events(agent)
    facts["at"] = statek_app.now


def test_events_of_stored_objects_arrive_in_order(statek_app, facts):
    agent, queue = create(warmup="print(event.caller)"), StatekPushQueue()
    statek_app.script(desk=["exit(event.caller)"] * 4)
    calls = [Call(name) for name in ("ann", "bob", "cy")]
    for call in calls:
        queue.push_to_agent_queue(agent, call)
    statek_app.at(7, lambda: queue.push_to_agent_queue(agent, Call("dee", "late")))
    start_statek([agent])
    facts["exits"] = [job.exit for job in statek_app.jobs]
    facts["at"] = statek_app.now


def test_two_agents_with_one_queue(statek_app, facts):
    first, second, queue = create("first"), create("second", "x = what"), StatekPushQueue()
    idle = create("idle")
    statek_app.script(first=["exit(event)"] * 2, second=["exit(x)"] * 2)
    for number in range(2):
        queue.push_to_agent_queue(second, number)
        queue.push_to_agent_queue(first, number)
    facts["idle"] = queue.has_agent_events(idle)
    facts["popped"] = list(queue.pop_from_agent_queue(idle, 3))
    start_statek([first])
    facts["exits"] = [(job.agent, job.exit) for job in statek_app.jobs]


def test_events_beside_a_loop(statek_app, facts):
    agent = create()
    StatekPushQueue().push_to_agent_queue(agent, "pushed")
    statek_app.script(desk=["exit(event)"] * 3)
    waiting = lambda: 3 if len(statek_app.jobs) < 3 else 0  # noqa: E731
    asyncio.run(run_agentic_loop(agent, "event = 'pulled'", waiting, OPEN))
    facts["exits"] = [job.exit for job in statek_app.jobs]


@pytest.mark.parametrize("prefixes", [[], OPEN, OPEN * 2], ids=len)
def test_queues_by_prefix(statek_app, facts, prefixes):
    agent, queue = create(), StatekPushQueue()
    queue.push_to_agent_queue(agent, 1)
    statek_app.script(desk=["exit(event)"] if prefixes else [])
    loops = [AgentLoopDef(agent, None, lambda: 0)]
    asyncio.run(run_agentic_fleet(loops, queue_prefixes=prefixes))
    facts["left"] = queue.has_agent_events(agent)


def test_a_run_serves_queues_only_after_a_worker_has_started(statek_app, facts):
    agent, queue = create(), StatekPushQueue()
    statek_app.script(desk=["exit(event)"] * 2)
    queue.push_to_agent_queue(agent, 1)
    statek_app.run()
    facts["before"] = len(statek_app.jobs)
    start_statek([agent])
    queue.push_to_agent_queue(agent, 2)
    statek_app.run()
    facts["after"] = len(statek_app.jobs)


def test_an_agent_forwards_an_event(statek_app, facts):
    agent = create("desk", "print(event)", forward)
    statek_app.script(desk=["print(forward({'n': event['n'] + 1}))\nexit(event)", "exit(event)"])
    StatekPushQueue().push_to_agent_queue(agent, {"n": 1})
    start_statek([agent])


@pytest.mark.parametrize("warmup", ["print(1)", "print(a, b)", None])
def test_warmup_code_that_does_not_read_one_event(statek_app, facts, warmup):
    agent, queue = create(warmup=warmup), StatekPushQueue()
    queue.push_to_agent_queue(agent, 1)
    facts.attempt("here", lambda: process_agent_events({agent}, queue_prefixes=OPEN))
    facts.attempt("served", lambda: start_statek([agent]))
    facts["left"] = queue.has_agent_events(agent)
    facts["worker"] = statek_app.run().worker


def test_events_are_counted(statek_app, facts):
    agents, queue = [create("one"), create("two")], StatekPushQueue()
    for number in range(3):
        for agent in agents:
            queue.push_to_agent_queue(agent, number)
    statek_app.script(one=["exit(event)"] * 3, two=["exit(event)"] * 2)
    made = facts["made"] = []
    for many in (0, 1, 3, 1):
        process_agent_events(agents, many, queue_prefixes=OPEN)
        made.append([job.agent for job in statek_app.jobs])
    facts["rest"] = [list(queue.pop_from_agent_queue(agent, many)) for agent in agents for many in (0, 1, 9)]
    statek_app.run()


def test_an_event_is_what_error_handlers_get(statek_app, facts):
    agent = create()
    agent.context["critical_error_handler"] = _lost
    StatekPushQueue().push_to_agent_queue(agent, {"n": 1})
    statek_app.script(desk=["1/0"] * 3)
    start_statek([agent])
    facts["log"] = list(LOG)


def test_messages_to_jobs(statek_app, facts):
    agent, queue = create("desk", None), StatekPushQueue()
    job, other = create_new_job(agent), create_new_job(agent)
    statek_app.script(desk=["print(1)", "exit(2)", "exit(3)", "exit(4)"])
    queue.push_to_job_console(db0.uuid(job), "first")
    queue.push_to_job_console("nobody", "lost")
    queue.push_to_job_console(db0.uuid(job), {"n": 2})
    facts["has"] = [queue.has_job(db0.uuid(some)) for some in (job, other)]
    facts["scanned"] = [queue.has_job(db0.uuid(other), max_scan=many) for many in (0, 2, 3)]
    statek_app.at(50, lambda: queue.push_to_job_console(db0.uuid(job), Call("ann")))
    start_statek([agent])
    facts["empty"] = queue.is_empty()
    facts["requests"] = [request.messages[1:] for request in statek_app.requests]


def test_messages_in_batches(statek_app, facts):
    job, queue = create_new_job(create("desk", None)), StatekPushQueue()
    seen = facts["seen"] = []
    for number in range(6):
        queue.push_to_job_console(db0.uuid(job), f"word {number}")
    for step, most in ((2, 0), (2, 3), (1, 1)):
        process_push_notifications(step, most, queue_prefixes=OPEN)
        seen.append(str(job.py_env.push_log))
    facts["rest"] = [[words for _, words in queue.pop_from_job_console(many)] for many in (0, 1, 9)]


def test_a_dialog_through_a_queue(statek_app, facts):
    agent = DialogAgent(said, role="talker", _metadata={"MODEL": "openai/gpt-4o"})
    agent.update_system_prompt(make_system_prompt("You talk."))
    agent.context["message_adapter"] = lambda call: f"{call.caller} says {call.words}"
    queue, job = StatekPushQueue(), create_new_job(agent)
    statek_app.script(talker=[text("Hello."), text("Again.")])
    queue.push_to_job_console(db0.uuid(job), Call("ann", "hi"))
    statek_app.at(9, lambda: queue.push_to_job_console(db0.uuid(job), "more"))
    start_statek([agent], push_queues=[queue, queue])
    facts["log"] = list(LOG)


def test_a_queue_is_one(statek_app, facts):
    queue = StatekPushQueue()
    agent = create()
    queue.push_to_agent_queue(agent, 1)
    facts["same"] = [StatekPushQueue() is queue, StatekPushQueue("statek-test") == queue]
    facts["still"] = StatekPushQueue().has_agent_events(agent)
    facts.attempt("refused", lambda: queue.push_to_agent_queue(agent, object()))
    facts.attempt("refused inside", lambda: queue.push_to_agent_queue(agent, [object()]))
    facts.attempt("refused message", lambda: queue.push_to_job_console("x", object()))
    for number, no_agent in enumerate(("desk", 1, [agent], {}, None, 1.5, Call)):
        facts.attempt(f"no agent {number}", lambda what=no_agent: queue.push_to_agent_queue(what, 1))
    facts["left"] = [list(queue.pop_from_agent_queue(agent, 9)), queue.is_empty()]
    facts["shown"] = str(type(queue).__name__)


def test_a_quickstart(statek_app, facts):
    prefix = "/acme/calls/dev"
    init()
    open_prefix(prefix, "rw")
    agent, queue = create(), StatekPushQueue(prefix=prefix)
    statek_app.script(desk=["exit(event)"] * 2)
    StatekClientAPI().submit_new_job(agent=agent, shared_vars={"event": {"n": 1}}, locale="EN-US", source="x")
    queue.push_to_agent_queue(agent, {"n": 2})
    start_statek(agents=[agent], push_queues=[queue], max_concurrency=10)
    facts["names"] = [db0.get_current_prefix().name, db0.get_prefix_of(queue).name]
    facts["exits"] = [job.exit for job in statek_app.jobs]


def test_without_a_queue(statek_app, facts):
    agent = create()
    process_agent_events(queue_prefixes=OPEN)
    process_push_notifications(queue_prefixes=OPEN)
    start_statek([agent])
    start_statek([agent], push_queues=[])
