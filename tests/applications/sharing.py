"""A help desk whose jobs share what they learn about a customer."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import (
    ContextCategory,
    ContextCategoryDict,
    ContextVar,
    create_new_job,
    init_shared_context,
    print_locals,
    shared_context_set_var,
    tool,
)
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt
from statek.shared_context import SharedContext, SharedContextProxy
from statek.testing import statek_context

from statek_sim import tool_call


@db0.memo
class Customer:
    def __init__(self, name):
        self.name = name


@tool
def look(name: str = "x", **kwargs):
    """Look."""
    return f"looked at {name}"


@tool
def learn(what: str, **kwargs):
    """Learn something."""
    shared_context_set_var("ENTITY", "learnt", what, "What was learnt")


def desk(warmup, **metadata):
    agent = SupervisedAgent(
        role="desk",
        _system_prompt=make_system_prompt("You help."),
        _tools=[look, learn],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )
    agent.update_warmup_def(warmup)
    return agent


HIDDEN = "#STATEK: hidden = True\n"
MANY = pytest.mark.statek(
    limits={"max_exceptions": 30, "max_consecutive_exceptions": 30, "max_turns": 40, "max_token_usage": None}
)

LINES = [
    "shared_context_set_var('ENTITY', 'colour', 'red', 'What they like')\nprint('set')",
    "print(colour)\ncolour",
    "colour = 'blue'",
    "print_locals('ENTITY')\nprint_locals('entity', str)\nprint_locals('PREFERENCE')",
    "print_locals('NOPE')",
    "print_locals('ENTITY', 5)",
    "def f():\n    return colour\nprint(f())",
    "print([colour for _ in 'a'], [1 for c in colour])",
    "del colour",
    "shared_context_set_var('NOPE', 'lost', 1, 'x')\nprint(lost)",
    "shared_context_set_var('VOCABULARY', 'look', 'not the tool', 'x')",
    "print(look)",
    "print(look('y'))",
    "x = 1\nshared_context_set_var('ENTITY', 'x', 2, 'mine')\nprint(x)",
    "print(x)\nx = 3\nprint(x)",
    "for colour in 'ab':\n    print(colour)",
    "if colour:\n    y = colour + '!'\nprint(y)",
    "shared_context_set_var('ENTITY', 'rows', [1, 2], 'rows')",
    "print(rows, rows[0])\nrows.append(3)\nprint(rows)",
    "print(nothing)",
    "learn('much')",
    "print(learnt)",
    "init_shared_context('other')",
    "print_locals('ENTITY')",
]


@MANY
def test_what_a_job_shares(statek_app, facts):
    statek_app.script(desk=[*LINES, "exit(colour)"])
    statek_app.create_job(desk(HIDDEN + "init_shared_context('ada')"))
    statek_app.run()
    (context,) = db0.find(SharedContext)
    facts["used"] = {
        name: [var.use_count, str(var.value), var.description, str(var.created_at)]
        for name, var in sorted(context._items())
    }


@MANY
def test_a_job_without_a_shared_context(statek_app, facts):
    statek_app.script(desk=[*LINES[:5], "exit(1)"])
    statek_app.create_job(desk("z = 1"))
    statek_app.run()


@MANY
def test_jobs_of_one_customer_share(statek_app, facts):
    ada, bob = Customer("Ada"), Customer("Bob")
    agent = desk(HIDDEN + "init_shared_context(customer)")
    both = desk(HIDDEN + "init_shared_context(customer, 'shop')")
    reader = desk(HIDDEN + "init_shared_context(customer, read_only=True)")
    scripts = (
        (agent, ada, ["shared_context_set_var('ENTITY', 'size', 'XL', 'of shirts')", "exit(1)"]),
        (agent, ada, ["print(size)", "exit(2)"]),
        (agent, bob, ["print(size)", "exit(3)"]),
        (
            both,
            ada,
            [
                "print(size)\nshared_context_set_var('ENTITY', 'size', 'L', 'in the shop')",
                "print(size)",
                "exit(4)",
            ],
        ),
        (both, ada, ["print(size)\nprint_locals('ENTITY')", "exit(5)"]),
        (
            reader,
            ada,
            ["print(size)\nshared_context_set_var('ENTITY', 'size', 'M', 'no')", "print(size)", "exit(6)"],
        ),
    )
    for at, (who, customer, replies) in enumerate(scripts):
        statek_app.script(desk=replies)
        create_new_job(who, {"customer": customer})
        statek_app.run()
        facts[f"contexts {at}"] = len(db0.find(SharedContext))


def test_only_texts_and_stored_things_bind(statek_app, facts):
    statek_app.create_job(desk(HIDDEN + "init_shared_context(5)"))
    statek_app.run()


@MANY
def test_tool_calls_and_cells(statek_app, facts):
    statek_app.script(
        desk=[
            tool_call(
                "shared_context_set_var", category="ENTITY", key="size", value="XL", description="of shirts"
            ),
            tool_call("print_locals", category="ENTITY"),
            tool_call("look", name="size"),
            tool_call("python_cli", code="print(size)"),
            tool_call("init_shared_context", read_only=True),
            "exit(size)",
        ]
    )
    statek_app.create_job(desk(HIDDEN + "init_shared_context('ada')", LLM_TOOLS_SCOPE="ALL"))
    statek_app.run()


def test_contexts_by_themselves(statek_app, facts):
    context = SharedContext()
    entity = ContextCategoryDict().get("entity")
    facts["categories"] = [entity.name, ContextCategoryDict().get("NOPE"), ContextCategoryDict().get(5)]
    facts["names"] = sorted(ContextCategoryDict().categories)
    context.set_var("ENTITY", "a", 1, "one")
    context.set_var(entity, "b", "two", "two")
    context.set_var("NOPE", "c", 3, "three")
    facts["kept"] = ["a" in context, "b" in context, "c" in context, context.get_var("c")]
    facts["values"] = [context.get_var("a").value, context.get_var("a").use_count]
    facts["selected"] = [var.value for var in context.select(entity)]
    facts["filtered"] = [var.value for var in context.select(entity, lambda var: var.value == 1)]
    facts["counted"] = [context._peek_var("a").use_count, context._peek_var("b").use_count]
    other = SharedContext()
    other.set_var("ENTITY", "b", "newer", "x")
    proxy = SharedContextProxy(context, [other])
    facts["proxy"] = [proxy.get_var("b").value, proxy.get_var("a").value, "b" in proxy, "z" in proxy]
    proxy.set_var("PREFERENCE", "d", 4, "four")
    facts["written"] = ["d" in context, "d" in other, [var.value for var in proxy.select(entity)]]
    facts.attempt(
        "read only", lambda: SharedContextProxy(context, read_only=True).set_var("ENTITY", "x", 1, "x")
    )
    facts.attempt("nowhere", lambda: SharedContextProxy(None, other).set_var("ENTITY", "x", 1, "x"))
    ContextCategoryDict().categories["ORDER"] = ContextCategory("ORDER")
    context.set_var("ORDER", "o", 5, "five")
    facts["own"] = [context.get_var("o").value, ContextVar("ORDER", 1, "x").use_count]
    facts.attempt("no job", lambda: init_shared_context("a"))
    facts["set without a job"] = shared_context_set_var("ENTITY", "a", 1, "x")
    job = create_new_job(desk(None))
    with statek_context(job=job):
        init_shared_context("a", "b")
        init_shared_context("b", "a", "b")
        shared_context_set_var("ENTITY", "k", 1, "x")
    facts["bound"] = sorted(list(one._binding_keys) for one in db0.find(SharedContext))
    statek_app.script(desk=["print(k)", "exit(1)"])
    statek_app.run()


def test_what_is_printed_by_the_application(statek_app, facts, capsys):
    print_locals("ENTITY")
    print_locals("vocabulary", int, str)
    facts.attempt("unknown", lambda: print_locals("x"))
    facts["printed"] = capsys.readouterr().out
