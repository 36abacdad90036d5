"""A workshop whose stored things have not all the same members."""
# mypy: ignore-errors

from dataclasses import dataclass, field

import dbzero as db0
import pytest
from statek import create_new_job, format_default_llm_repr, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt


@db0.memo
class Part:
    def __init__(self, name, weight=None):
        self.name = name
        if weight is not None:
            self.weight = weight

    def heavy(self):
        return self.weight > 2

    def told(self):
        return [hasattr(self, "weight"), getattr(self, "weight", "none"), getattr(self, "nothing", "none")]

    @property
    def burden(self):
        return self.weight


@db0.memo
class Special(Part):
    def __init__(self, name):
        super().__init__(name, 5)
        self.note = "careful"


@db0.memo
@dataclass
class Box:
    label: str
    parts: list = field(default_factory=list)
    _X__draft: str = "x"


@db0.memo
@dataclass
class Coin:
    value: int
    side: str = "head"

    def same(self, other):
        return self == other

    def among(self, coins):
        return self in coins


@tool
def coin(value: int, **kwargs):
    """Make a coin."""
    return Coin(value)


@tool
def same(one: Coin, other: Coin, **kwargs):
    """Compare coins."""
    return [one == other, one != other, one in [other]]


@db0.memo
class Bag:
    def __init__(self, **things):
        for name, value in things.items():
            setattr(self, name, value)


@db0.memo
class Sack(Bag):
    pass


@tool
def part(name: str, weight: int = None, **kwargs):
    """Make a part."""
    return Part(name, weight)


@tool
def parts(**kwargs):
    """Make parts."""
    return [Part("a"), Part("b", 2)]


def create():
    return SupervisedAgent(
        role="fitter",
        _system_prompt=make_system_prompt("You build."),
        _tools=[part, parts, coin, same],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.mark.statek(
    limits={"max_exceptions": 19, "max_consecutive_exceptions": 19, "max_turns": 20, "max_token_usage": None}
)
def test_what_one_object_has_the_others_of_its_class_are_asked_for(statek_app, facts):
    statek_app.script(
        fitter=[
            "a = part('axle')\nprint(a)\na",
            "b = part('bolt', 3)\nprint(b)",
            "print(a)",
            "print(a.name)\na",
            "print(a.weight)",
            "print(a.nothing)",
            "print(a.heavy())",
            "print(a.told())",
            "print(a.burden)",
            "a.weight > 2",
            "print(hasattr(a, 'weight'), getattr(a, 'weight', 'none'), hasattr(a, 'nothing'))",
            "print(f'{a}')",
            "print([a, b])",
            "parts()",
            "exit(a)",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()


@pytest.mark.statek(
    limits={"max_exceptions": 19, "max_consecutive_exceptions": 19, "max_turns": 20, "max_token_usage": None}
)
def test_objects_are_compared(statek_app, facts):
    statek_app.script(
        fitter=[
            "a, b, c = coin(1), coin(1), part('axle')",
            "print(a == b)",
            "print(a != b)",
            "print(a == a)",
            "print(a.same(b))",
            "print(a.among([b]))",
            "print(same(a, b))",
            "print(a in [a], a in [b])",
            "print([a] == [b])",
            "print(a == 1)",
            "print(1 == a)",
            "print(c == c, c == a, c != a)",
            "print({'k': a} == {'k': b})",
            "print(a is a, hash(a) == hash(a))",
            "d = a\nprint(d.value)",
            "exit(1)",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()


def test_members_by_class(statek_app, facts):
    plain = Part("axle")
    facts["alone"] = format_default_llm_repr(plain)
    heavy = Part("bolt", 3)
    facts.attempt("lacks one", lambda: format_default_llm_repr(plain))
    facts["has all"] = format_default_llm_repr(heavy)
    facts.attempt("hidden", lambda: format_default_llm_repr(plain, hide=["weight"]))
    facts.attempt("shown", lambda: format_default_llm_repr(plain, show_only=["name"]))
    facts.attempt("listed", lambda: format_default_llm_repr([plain]))
    facts.attempt("read", lambda: plain.weight)
    plain.weight = 1
    facts["mended"] = format_default_llm_repr(plain)
    del plain.weight
    facts.attempt("deleted", lambda: format_default_llm_repr(plain))
    plain.colour = "red"
    facts.attempt("of another", lambda: format_default_llm_repr(heavy))
    special = Special("gear")
    facts["of a subclass"] = sorted(format_default_llm_repr(special).partition("(")[2].rstrip(")").split(","))
    special.extra = 1
    facts.attempt("base", lambda: format_default_llm_repr(Part("x", 1), hide=["colour"]))
    facts["dataclass"] = format_default_llm_repr(Box("b"))


def test_order_of_vars(statek_app, facts):
    facts["bags"] = [
        list(vars(bag))
        for bag in (
            Bag(what="a", count=1),
            Bag(count=1, what="a"),
            Bag(a=1, b=2, c=3),
            Bag(c=3, b=2, a=1),
            Bag(n=1, t="a", m=2, u="b", l=[1], k=None, f=1.5, j=True),
            Bag(**{f"member{n}": n for n in range(30)}),
        )
    ]
    box = Box("b")
    facts["of a dataclass"] = list(vars(box))
    bag = Sack(a="x", b=1, c=[1], d=True, e=2, f=None)
    facts["before"] = dict(vars(bag)).__repr__()
    bag.z, bag.a = 1, "y"
    facts["after"] = [list(vars(bag)), list(bag.__dict__)]
    facts["subclass"] = list(vars(Special("gear")))


def test_what_is_missing_is_told_with_the_full_name_of_the_class(statek_app, facts):
    statek_app.script(fitter=["exit(1)"])
    job = create_new_job(create())
    statek_app.run()
    things = {
        "job": job,
        "definition": job.job_def,
        "workspace": job.py_env,
        "agent": job.agent,
        "own": Part("x"),
    }
    for name, thing in things.items():
        facts.attempt(name, lambda thing=thing: thing.nothing)


def test_a_job_without_a_dialog_looks_at_no_step(statek_app, facts):
    facts["final"] = create_new_job(create()).is_step_final(None)
