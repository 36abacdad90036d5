"""An application whose tools look into the workspace while the block runs that calls them."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import format_default_llm_repr, get_current_job, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

LIMITS = {"max_exceptions": 40, "max_consecutive_exceptions": 40, "max_turns": 40, "max_token_usage": None}


@db0.memo
class Box:
    note = "x"

    def __init__(self, n):
        self.n = n

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide="abcnote", **kwargs)


@db0.memo
class Bag:
    def __init__(self, **members):
        for name, value in members.items():
            setattr(self, name, value)

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide="secret", **kwargs)


@tool
def env(what: str, **kwargs):
    """Look into the workspace, and write there."""
    job = get_current_job()
    held = job.py_env.local_state
    if what == "write":
        job.py_env.update_locals(w=5, a=99)
    elif what == "set":
        held["z"] = 7
    elif what == "del":
        del held["a"]
    elif what == "replace":
        job.py_env.local_state = {"q": 1}
    elif what == "find":
        return sorted(str(found) for found in job.find_locals(int))
    elif what == "console":
        return len(job.py_env.console or [])
    elif what == "local":
        return dict(held)
    return sorted(job.py_env.local_state)


@tool
def bag(**kwargs):
    """Make a bag."""
    return Bag(secret=1, sec=2, e="x", plain=3, t=[1])


@tool
def box(n: int, **kwargs):
    """Make a box."""
    return Box(n)


CASES = [
    [
        "a = 1\nprint(env('names'))\nb = 2\nprint(env('names'))",
        "print(env('names'))",
        "a = 2\nc = 3\nprint(env('local'))\ndel b\nprint(env('local'))",
        "print(env('local'))",
    ],
    ["a = 1", "b = 2\nprint(env('write'))\nprint(a)", "print(a)", "print(w)"],
    ["a = 1", "print(env('set'))\nz = 3", "print(z)"],
    ["a = 1", "print(env('set'))", "print(z)", "print(env('del'))", "print(a)"],
    ["a = 1", "print(env('del'))\nprint(a)\na = 1", "print(a)"],
    ["a = 1", "print(env('del'))\nprint(a)\na = 2", "print(a)"],
    ["a = 1", "b = 1\nprint(env('replace'))\nprint(a)\nc = 1", "print(env('names'))", "print(b, c)"],
    ["a = 1\nb = 'x'", "c = 3\nprint(env('find'))"],
    ["print(1)\nprint(env('console'))\nprint(2)\nprint(env('console'))"],
    ["x = bag()\nprint(x)", "x"],
    ["y = box(3)\nprint(y)"],
    ["a = [1]\nprint(env('local'))", "a.append(2)\nprint(env('local'))", "a = [3]\nprint(env('local'))"],
    ["a = 1\nprint(env('names'))\nraise ValueError(1)", "print(env('names'))"],
    ["def f():\n    return env('names')\na = 1\nprint(f())"],
    ["for i in range(2):\n    print(env('names'))", "print(env('names'))"],
    ["a = 1\nb = env('names')\nc = env('names')\nprint(b, c)"],
]


@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.not_what_was_sent
@pytest.mark.statek(limits=LIMITS)
def test_a_tool_sees_the_workspace_of_before_the_block(statek_app, facts, number):
    statek_app.script(clerk=[*CASES[number], "exit(1)"])
    statek_app.create_job(
        SupervisedAgent(
            role="clerk",
            _system_prompt=make_system_prompt("You look."),
            _tools=[env, bag, box],
            _metadata={"MODEL": "openai/gpt-4o"},
        )
    )
    statek_app.run()
