"""Briefings: what a guide's prompt says of its parameters, and functions that no module has."""
# mypy: ignore-errors

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import dbzero as db0
import pytest
import statek
from statek import create_new_job, error_handler, tool
from statek.agents import DialogAgent, SupervisedAgent
from statek.executors.job import JobDefError
from statek.prompt_config import make_system_prompt
from statek.utils import CodeBlock

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Goal:
    name: str


class Named(str):
    pass


@db0.memo
class Kept:
    def __init__(self, name):
        self.name = name


def plain(context):
    return context


GOALS = {
    "mapping": lambda: {"z": 1, "a": 2},
    "nested": lambda: {"b": [1, {"y": 2, "x": 1}], "a": (2, 3)},
    "list": lambda: [3, 1],
    "tuple": lambda: (1, "a"),
    "set": lambda: {"b", "a", "c"},
    "decimal": lambda: Decimal("1.50"),
    "small decimal": lambda: Decimal("1E+6"),
    "NUL": lambda: "left\0 right",
    "text": lambda: "text",
    "none": lambda: None,
    "number": lambda: 5,
    "date": lambda: date(2026, 1, 2),
    "stored": lambda: Kept("x"),
    "function": lambda: plain,
    "class": lambda: Goal,
    "empty": dict,
    "dataclass": lambda: Goal("x"),
    "list of dataclass": lambda: [1, Goal("x")],
    "counter": lambda: Counter("aab"),
    "duration": lambda: timedelta(5),
    "subclass of str": lambda: Named("x"),
    "frozenset": lambda: frozenset({1, 2}),
    "lambda": lambda: lambda: 5,
}


def guide(*tools, prompt="You {goal}."):
    return SupervisedAgent(
        role="guide",
        _system_prompt=make_system_prompt(prompt),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o"},
    )


def params(job):
    kept = job.job_def.job_params
    told = {name: type(kept[name]).__name__ for name in kept}
    return [type(kept).__name__, told, job.agent.system_prompt("low", job_params=kept)]


@pytest.mark.parametrize("kind", GOALS)
def test_a_prompt_says_what_the_store_keeps_of_a_parameter(kind, statek_app, facts):
    agent, goal = guide(), GOALS[kind]()
    made = []
    facts.attempt("made", lambda: made.append(create_new_job(agent, goal=goal)))
    if made:
        facts["params"] = params(made[0])
        facts["shared"] = create_new_job(agent, goal=goal).job_def is made[0].job_def
    statek_app.script(guide=["exit(1)"] * len(statek_app.jobs))
    statek_app.run()


def test_parameters_are_copied_and_ordered(statek_app, facts):
    agent, goal = guide(), {"z": 1, "a": 2}
    first = create_new_job(agent, other=2, goal=goal, aim=3)
    goal["b"] = 5
    facts["first"] = params(first)
    facts["second"] = params(create_new_job(agent, other=2, goal=goal, aim=3))
    facts["definition"] = repr(agent.create_job_def(goal=goal).job_params)
    facts.attempt("refused", lambda: agent.create_job_def(goal=Goal("x")))


def _nested():
    @error_handler
    def _undo(context, error=None):
        pass

    @tool(error_handler=_undo)
    def dig(**kwargs):
        """Dig."""
        return 1

    return dig, _undo


dig, _undo = _nested()


class Shed:
    @staticmethod
    def spade(**kwargs):
        """Have a spade."""
        return 1


@tool(error_handler=_undo)
def plant(**kwargs):
    """Plant."""
    return 1


@tool
def seed(**kwargs):
    """Have a function."""
    return dig


TOOLS = {"nested": dig, "lambda": lambda: 1, "of a class": Shed.spade, "method": Shed().spade}
SHARED = {"nested": dig, "in a list": [dig], "lambda": lambda: 1, "plain": plain}


@pytest.mark.parametrize("kind", TOOLS)
def test_an_agent_takes_functions_of_modules_as_tools(kind, statek_app, facts):
    facts.attempt("made", lambda: len(guide(TOOLS[kind]).tools))
    facts.attempt("dialog", lambda: DialogAgent(TOOLS[kind], role="desk").role)


@pytest.mark.parametrize("kind", SHARED)
def test_a_job_takes_functions_of_modules_as_variables(kind, statek_app, facts):
    facts.attempt("made", lambda: str(create_new_job(guide(prompt="Go."), {"f": SHARED[kind]}).status))


@pytest.mark.statek(limits={"max_exceptions": 9, "max_consecutive_exceptions": 9})
def test_a_handler_of_no_module_is_refused(statek_app, facts):
    statek_app.script(guide=["plant()", "f = seed()\nprint(f())", "print(f)", "exit(1)"])
    job = statek_app.create_job(guide(plant, seed, prompt="Go."))
    facts.attempt("handler", lambda: job.add_error_handler(_undo, 1))
    statek_app.run()


@pytest.mark.parametrize("many", [False, True])
def test_a_code_block_is_warmup(many, statek_app, facts):
    block = CodeBlock("greeting = 'hello'\nprint(greeting)")
    statek_app.script(guide=["print(greeting)", "exit(1)"])
    statek_app.create_job(guide(prompt="Go."), warmup_code=[block, "print(2)"] if many else block)
    statek_app.run()


def test_what_the_package_says_of_itself(statek_app, facts):
    everything = {}
    exec("from statek import *", everything)
    facts["version"] = statek.__version__
    facts["bound"] = [
        name in everything for name in ("tool", "get_any", "subtask", "create_new_job", "statek_print")
    ]
    failure = JobDefError(ValueError("no"))
    facts["failure"] = [
        failure.error_message,
        failure.traceback,
        JobDefError(ValueError("no"), False).traceback,
    ]
