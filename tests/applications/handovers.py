"""A relay: what runners hand to each other goes through the store on its way."""
# mypy: ignore-errors

from collections import Counter
from dataclasses import dataclass

import dbzero as db0
import pytest
from statek import complete_sub_task, create_new_job, create_sub_task, get_current_job, subtask, tool
from statek.agents import SupervisedAgent
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.task import SubTaskHandler, delegate_task


@db0.memo(singleton=True)
class Track:
    def __init__(self):
        self.runners = {}
        self.open = False


@db0.memo
class Baton:
    def __init__(self, colour):
        self.colour = colour


@dataclass
class Split:
    seconds: float


RESULTS = {
    "text": lambda: "3:14",
    "nothing": lambda: None,
    "number": lambda: 194,
    "list": lambda: [1, 2],
    "nested": lambda: {"b": [1], "a": (2, 3)},
    "cut": lambda: "3:14\0 and a bit",
    "big": lambda: 2**65,
    "counter": lambda: Counter("aab"),
    "plain": lambda: Split(3.5),
    "baton": lambda: Baton("red"),
    "lost inside": lambda: [1, Split(3.5)],
    "big inside": lambda: [1, 2**65, 3],
    "set": lambda: {"b", "a"},
    "lambda": lambda: lambda: 5,
}


@tool
def finish(kind: str, **kwargs):
    """Report a result."""
    complete_sub_task(RESULTS[kind]())


@tool
def fail(words: str, **kwargs):
    """Report an error."""
    complete_sub_task(error=words)


@tool
def result_of(kind: str, **kwargs):
    """Have a value."""
    return RESULTS[kind]()


@subtask
def send(leg: str, **kwargs):
    """Send a runner."""
    return create_new_job(Track().runners["runner"], {"leg": leg}, get_current_job())


@tool
def run_leg(leg: str, **kwargs):
    """Have a leg run."""
    return delegate_task(Track().runners["runner"], shared_vars={"leg": leg}, parent_job=get_current_job())


def is_open(future) -> bool:
    return Track().open


def what_it_waits_for(future) -> str:
    return f"{type(future.deps).__name__} {future.deps!r} {future.state_num!r}"


@temporal(complement=what_it_waits_for, condition=is_open)
@tool
def starting_gun(kind: str, **kwargs):
    """Wait for the start."""
    Track().open = True
    return FutureResult(RESULTS[kind](), 2)


def agent(role, *tools, **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You run."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.fixture
def coach(statek_app):
    Track().runners["runner"] = agent("runner", finish, fail, result_of)
    Track().open = False
    return agent("coach", send, run_leg, starting_gun, result_of)


REFUSED = ("counter", "lambda", "lost inside", "plain")
"""What the store does not take."""

pytestmark = pytest.mark.filterwarnings("ignore")

MANY = pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 40, "max_exceptions": 30, "max_consecutive_exceptions": 30, "max_token_usage": None},
)


@MANY
@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_a_result_is_handed_to_the_parent(statek_app, coach, facts, kind):
    statek_app.script(
        coach=[
            "send('first', id='a')",
            "x = 1",
            "h = find_sub_task_handler('a')\nprint(str(h))",
            "r = find_sub_task_handler('a').result\nprint(r, r == 194)",
            "print(r)",
            "exit('over')",
        ],
        runner=[f"finish({kind!r})\nprint('told')", "print(sub_task_handler.is_completed)", "exit('ran')"],
    )
    job = statek_app.create_job(coach, name="coach")
    statek_app.run()
    facts.attempt("handler", lambda: str(job.find_sub_task_handler("a")))
    facts.attempt("type", lambda: type(job.find_sub_task_handler("a").result).__name__)


@MANY
@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_an_application_completes_a_subtask(statek_app, coach, facts, kind):
    statek_app.script(
        coach=[
            "x = 1",
            "print(find_sub_task_handler('a'))",
            "exit('over')",
            *(["exit('again')"] if kind in REFUSED else []),
        ],
        runner=["exit(leg)"],
    )
    parent = statek_app.create_job(coach, name="coach")
    child = create_new_job(Track().runners["runner"], {"leg": "x"}, parent)
    handler = create_sub_task(child, id="a")
    facts.attempt("complete", lambda: handler.complete(RESULTS[kind]()))
    facts["state"] = [handler.is_completed, str(handler.state)]
    facts.attempt("result", lambda: repr(handler.result))
    statek_app.run()
    facts["after"] = [handler.is_completed, str(handler.state)]
    facts.attempt("again", lambda: handler.complete("other"))
    statek_app.run()


@MANY
@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_an_exit_status_is_handed_on(statek_app, coach, facts, kind):
    statek_app.script(
        coach=[
            "status, job = run_leg('first')\nprint(status)\nkept = status",
            "print(kept, type(kept))",
            "exit(kept)",
        ],
        runner=[f"exit(result_of({kind!r}))", *(["exit('3')"] if kind in (*REFUSED, "nothing") else [])],
    )
    statek_app.create_job(coach, name="coach")
    statek_app.run()


@MANY
@pytest.mark.not_what_was_sent
@pytest.mark.parametrize("kind", sorted(RESULTS))
def test_a_future_keeps_what_it_depends_on(statek_app, coach, facts, kind):
    statek_app.script(coach=[f"g = starting_gun({kind!r})\nprint(g)", "y = 1", "exit('over')"])
    statek_app.create_job(coach, name="coach")
    statek_app.run()
    facts.attempt("alone", lambda: repr(FutureResult(RESULTS[kind](), 3).deps))
    facts.attempt("number", lambda: repr(FutureResult(None, RESULTS[kind]()).state_num))


@MANY
def test_an_error_is_handed_to_the_parent(statek_app, coach, facts):
    statek_app.script(
        coach=["send('first', id='a')", "x = 1", "print(find_sub_task_handler('a'))", "exit('over')"],
        runner=["fail('fell\\0 over')", "exit('ran')"],
    )
    job = statek_app.create_job(coach, name="coach")
    statek_app.run()
    handler = job.find_sub_task_handler("a")
    facts["error"] = [handler.error.err_message, handler.get_log_message()]


@MANY
def test_messages_are_stored(statek_app, coach, facts):
    statek_app.script(coach=["exit(1)", "x = 1", "exit(2)", "exit(3)"])
    job = statek_app.create_job(coach, name="coach")
    statek_app.run()
    facts.attempt("cut", lambda: job.push_user_message("left\0 right"))
    statek_app.run()
    facts.attempt("surrogate", lambda: job.push_user_message("one \ud800 two"))
    facts.attempt("big", lambda: job.push_user_message(2**65))
    facts.attempt("object", lambda: job.push_user_message(Split(1.5)))
    statek_app.run()


@MANY
def test_notices_are_stored(statek_app, coach, facts):
    statek_app.script(coach=["exit(1)", "x = 1", "exit(2)"])
    job = statek_app.create_job(coach, name="coach")
    statek_app.run()
    facts.attempt("cut", lambda: job.send_notification("left\0 right"))
    statek_app.run()
    facts.attempt("surrogate", lambda: job.send_notification("one \ud800 two"))
    facts.attempt("number", lambda: job.send_notification(5))
    facts.attempt("handler", lambda: SubTaskHandler(job, id=Split(1.0)).id)
