"""A shop whose stored classes say themselves how an agent sees them."""
# mypy: ignore-errors

from dataclasses import dataclass, field
from datetime import date, datetime

import dbzero as db0
import pytest
from statek import format_default_llm_repr, statek_print, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt
from statek.utils import format_llm_repr, format_value_repr


@db0.memo
@dataclass
class Address:
    street: str
    town: str


@db0.memo
@dataclass
class Customer:
    name: str
    address: Address
    secret: str = "s3cret"
    orders: list = field(default_factory=list)

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide=["secret"], **kwargs)


@db0.memo
@dataclass
class Order:
    number: int
    customer: Customer
    lines: list = field(default_factory=list)
    at: datetime = None

    def __llm_repr__(self):
        return format_default_llm_repr(self, show_only=["number", "customer", "lines"], expand=["customer"])


@db0.memo
@dataclass
class Broken:
    name: str

    def __llm_repr__(self):
        raise ValueError(f"cannot show {self.name}")


@db0.memo
@dataclass
class Talkative:
    name: str

    def __str__(self):
        return f"I am {self.name}"


@db0.memo
@dataclass
class Odd:
    name: str

    def __llm_repr__(self):
        return 5


def people():
    ada = Customer("Ada", Address("Main St", "London"))
    return ada, Order(7, ada, ["tea", "milk"], datetime(2026, 1, 2, 3, 4))


@tool
def find_order(**kwargs):
    """Find an order."""
    return people()[1]


@tool
def find_all(**kwargs):
    """Find orders."""
    return [people()[1], people()[1]]


@tool
def broken(**kwargs):
    """Return something that cannot be shown."""
    return Broken("x")


@tool
def show(**kwargs):
    """Print."""
    statek_print(*people(), sep="; ")


def create():
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You sell."),
        _tools=[find_order, find_all, broken, show],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


def test_options_reach_the_formatter(statek_app, facts):
    ada, order = people()
    facts["plain"] = format_default_llm_repr(ada)
    facts["hide"] = format_default_llm_repr(order.customer.address, hide=["street"])
    facts["show_only"] = format_default_llm_repr(ada.address, show_only=["town"])
    facts["expand"] = format_default_llm_repr(order)
    facts["max_len"] = format_default_llm_repr([1, 2, 3], max_len=2)
    facts["nested text"] = format_default_llm_repr("x", is_nested=True)
    facts["text"] = format_default_llm_repr("x")
    facts["nested memo"] = format_default_llm_repr(ada, is_nested=True)
    facts["repeated"] = format_default_llm_repr([ada, ada, ada])
    facts["repeated option"] = format_default_llm_repr(ada, repeated=True)
    facts["mapping"] = format_default_llm_repr({"a": ada, "b": [order], 3: date(2026, 1, 2)})
    facts["str"] = format_default_llm_repr(Talkative("Bob"))
    facts["str with options"] = format_default_llm_repr(Talkative("Bob"), hide=["name"], max_len=1)
    facts["str in list"] = format_default_llm_repr([Talkative("Bob")])
    facts.attempt("value", lambda: format_value_repr(ada))
    facts.attempt("value of text", lambda: format_value_repr("x"))
    facts.attempt("value of text outside", lambda: format_value_repr("x", is_nested=False))
    facts.attempt("llm", lambda: format_llm_repr(ada, hide=["secret", "address"]))
    facts.attempt("llm list", lambda: format_llm_repr([1, "x", None], max_len=2))
    facts.attempt("llm str", lambda: format_llm_repr(Talkative("Bob")))
    facts.attempt("None", lambda: format_default_llm_repr(None))
    facts.attempt("stored list", lambda: format_default_llm_repr(order.lines))
    facts.attempt("class", lambda: format_default_llm_repr(Customer))
    facts.attempt("unknown option", lambda: format_default_llm_repr(ada, depth=3))
    facts.attempt("unknown option of a list", lambda: format_default_llm_repr([1], depth=3))
    facts.attempt("no text", lambda: format_default_llm_repr(Odd("x")))
    facts.attempt("a date", lambda: format_default_llm_repr(date(2026, 1, 2)))


def test_errors_in_a_representation_are_the_callers(statek_app, facts):
    facts.attempt("one", lambda: format_default_llm_repr(Broken("x")))
    facts.attempt("listed", lambda: format_default_llm_repr([Broken("x")]))
    facts.attempt("printed", lambda: statek_print(Broken("x")))


@pytest.mark.statek(
    limits={"max_exceptions": 9, "max_consecutive_exceptions": 9, "max_turns": 20, "max_token_usage": None}
)
def test_agents_see_what_the_classes_say(statek_app, facts):
    statek_app.script(
        clerk=[
            "o = find_order()\nprint(o)\no\nprint(o.customer, o.lines)",
            "print(find_all())\nfind_all()",
            "b = broken()",
            "print(b)",
            "b",
            "print(f'{b}')",
            "show()",
            "print(o.at)\nprint([o.at])\no.customer.address",
            "exit('done')",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()


def test_a_job_may_exit_with_an_object(statek_app, facts):
    statek_app.script(clerk=["exit(find_order())"])
    statek_app.create_job(create())
    statek_app.run()
