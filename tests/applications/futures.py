"""A workshop that waits for deliveries, again and again under the same names."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import create_new_job, get_current_job, tool
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.task import delegate_task

from statek_sim import tool_call


@db0.memo
class Shelf:
    def __init__(self, name):
        self.name = name
        self.parts = []


@db0.memo(singleton=True)
class Workshop:
    def __init__(self):
        self.shelves = {}
        self.apprentice = None


@db0.memo
class Delivery(FutureResult):
    def __init__(self, shelf, number, deps=None, state_num=0):
        super().__init__(deps=deps, state_num=state_num)
        self.shelf = shelf
        self.number = number


def has_come(future) -> bool:
    return len(future.shelf.parts) > future.number


def what_came(future) -> str:
    if not has_come(future):
        raise FutureError(future)
    return future.shelf.parts[future.number]


def both(future) -> tuple[str, int]:
    return (what_came(future), future.number)


@temporal(complement=what_came, condition=has_come)
@tool
def order(name: str, number: int, **kwargs):
    """Order a part."""
    return Delivery(Workshop().shelves[name], number)


@temporal(complement=what_came, condition=has_come)
@tool
def order_from(name: str, number: int, **kwargs):
    """Order a part of a shelf that the future depends on."""
    shelf = Workshop().shelves[name]
    return Delivery(shelf, number, deps=shelf)


@temporal(complement=what_came, condition=has_come)
@tool
def order_number(name: str, number: int, **kwargs):
    """Order a part, and count."""
    return Delivery(Workshop().shelves[name], number, state_num=number)


def not_yet(future):
    raise FutureError(future, "ask again later")


@temporal(complement=not_yet, condition=has_come)
@tool
def order_later(name: str, **kwargs):
    """Order a part that never comes."""
    return Delivery(Workshop().shelves[name], 9)


@tool
def join(first: str, second: str = "", *, mark: str = "+", **kwargs):
    """Join parts."""
    return first + mark + second


@temporal(complement=both, condition=has_come)
@tool
def order_with_number(name: str, number: int, **kwargs):
    """Order a part and its number."""
    return Delivery(Workshop().shelves[name], number)


@tool
def apprentice(task: str, **kwargs):
    """Have somebody do something."""
    return delegate_task(Workshop().apprentice, shared_vars={"task": task}, parent_job=get_current_job())


def agent(role, *tools):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You build."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.fixture
def master(statek_app):
    room = Workshop()
    room.shelves = {name: Shelf(name) for name in ("wood", "iron")}
    room.apprentice = agent("apprentice")
    return agent("master", order, order_from, order_number, order_with_number, apprentice)


def bring(name, *parts):
    Workshop().shelves[name].parts.extend(parts)


MANY = pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 40, "max_exceptions": 30, "max_consecutive_exceptions": 30, "max_token_usage": None},
)
pytestmark = pytest.mark.filterwarnings("ignore")

REPLIES = {
    "another part": ["a = {t}('wood', 0)\nprint(a)", "a = {t}('wood', 1)\nprint(a)"],
    "another shelf": ["a = {t}('wood', 0)\nprint(a)", "a = {t}('iron', 0)\nprint(a)"],
    "another name": ["a = {t}('wood', 0)\nprint(a)", "b = {t}('wood', 1)\nprint(a, b)"],
    "deleted before": ["a = {t}('wood', 0)\nprint(a)", "del a", "a = {t}('wood', 1)\nprint(a)"],
    "a text between": ["a = {t}('wood', 0)\nprint(a)", "a = 'text'", "a = {t}('wood', 1)\nprint(a)"],
    "in a list": ["a = [{t}('wood', 0)]\nprint(a[0])", "a = [{t}('wood', 1)]\nprint(a[0])"],
    "read at once": ["print({t}('wood', 0))", "print({t}('wood', 1))"],
}


@MANY
@pytest.mark.not_what_was_sent
@pytest.mark.parametrize("name", ["order", "order_from", "order_number"])
@pytest.mark.parametrize("kind", REPLIES)
def test_a_second_delivery_under_a_name(statek_app, master, facts, kind, name):
    statek_app.script(master=[*(reply.replace("{t}", name) for reply in REPLIES[kind]), "exit('built')"])
    statek_app.create_job(master, name="master")
    statek_app.at(5, lambda: bring("wood", "oak", "elm"))
    statek_app.at(9, lambda: bring("iron", "nail", "bolt"))
    statek_app.run()


@MANY
@pytest.mark.not_what_was_sent
def test_members_of_two_tuples(statek_app, master, facts):
    statek_app.script(
        master=[
            "part, number = order_with_number('wood', 0)\nprint(part, number)",
            "part, number = order_with_number('wood', 1)\nprint(part, number)",
            "first, second = order_with_number('iron', 1)\nprint(first, second, part)",
            "exit('built')",
        ]
    )
    statek_app.create_job(master, name="master")
    statek_app.at(5, lambda: bring("wood", "oak", "elm"))
    statek_app.at(9, lambda: bring("iron", "nail", "bolt"))
    statek_app.run()


@MANY
@pytest.mark.not_what_was_sent
def test_two_tasks_under_one_name(statek_app, master, facts):
    statek_app.script(
        master=[
            "status, job = apprentice('saw')\nprint(status)",
            "status, job = apprentice('sand')\nprint(status)",
            "done = apprentice('paint')\nprint(done[0])",
            "done = apprentice('dry')\nprint(done[0])",
            "exit('built')",
        ],
        apprentice=["exit('did ' + task)"] * 4,
    )
    statek_app.create_job(master, name="master")
    statek_app.run()


def test_which_futures_are_equal(statek_app, master, facts):
    wood, iron = Workshop().shelves["wood"], Workshop().shelves["iron"]
    one = order("wood", 0)
    facts["same tool"] = [one == order("iron", 3), one != order("iron", 3), one == one]
    facts["another tool"] = [one == order_with_number("wood", 0), one == Delivery(wood, 0)]
    facts["depends"] = [
        order_from("wood", 0) == order_from("wood", 1),
        order_from("wood", 0) == order_from("iron", 0),
    ]
    facts["state"] = [order_number("wood", 0) == order_number("wood", 1)]
    facts["plain"] = [
        FutureResult(None, 0) == FutureResult(None, 0),
        FutureResult(wood, 0) == FutureResult(iron, 0),
        FutureResult(None, 0) == Delivery(wood, 0),
    ]
    facts["hashed"] = len({one, order("iron", 3)})
    members = [*order_with_number("wood", 0)]
    facts["members"] = [members[0] == members[1], members[0] == next(iter(order_with_number("iron", 1)))]
    job = create_new_job(master)
    facts["tasks"] = delegate_task(master, parent_job=job) == delegate_task(master, parent_job=job)


@MANY
@pytest.mark.not_what_was_sent
def test_texts_of_futures_for_a_model(statek_app, facts):
    Workshop().shelves["wood"] = Shelf("wood")
    statek_app.script(
        clerk=[
            tool_call("order_later", name="wood"),
            tool_call("order", name="wood", number=0),
            "a = order('wood', 0)\nprint(join(a, second=a), join(mark='-', first=a))",
            "exit(1)",
        ]
    )
    statek_app.at(5, lambda: bring("wood", "board"))
    clerk = agent("clerk", order, order_later, join)
    clerk.update_metadata({"MODEL": "openai/gpt-4o", "LLM_TOOLS_SCOPE": "APPLICATION"})
    job = statek_app.create_job(clerk)
    statek_app.run()
    facts["told"] = [str(item.tool_log).split(" at 0x")[0] for item in job.chat_log]
