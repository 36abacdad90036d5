"""A shop whose agent cannot always make its context, or has odd names in it."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import get_current_agent, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

MANY = pytest.mark.statek(
    limits={"max_turns": 12, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)
STATE = {"fails": False, "kind": ValueError, "keys": {}}


@db0.memo
class Fitter(SupervisedAgent):
    def init_context(self):
        if STATE["fails"]:
            raise STATE["kind"]("no context")
        super().init_context()
        self.context.update(STATE["keys"])


@tool
def break_context(**kwargs):
    """Break the context."""
    STATE["fails"] = True
    get_current_agent()._X__context = None
    return "broken"


@pytest.fixture
def fitter():
    STATE.update(fails=False, kind=ValueError, keys={})
    yield lambda: Fitter(
        role="fitter",
        _system_prompt=make_system_prompt("You build."),
        _tools=[break_context],
        _metadata={"MODEL": "openai/gpt-4o"},
    )
    STATE.update(fails=False, keys={})


def run(app, facts, agent, lines):
    def go():
        app.script(fitter=lines)
        app.create_job(agent())
        app.run()

    facts.attempt("run", go)


@MANY
@pytest.mark.parametrize("kind", [ValueError, TypeError, AttributeError, RuntimeError])
def test_a_context_that_breaks(statek_app, facts, fitter, kind):
    STATE["kind"] = kind
    run(statek_app, facts, fitter, ["x = 1\nbreak_context()\ny = 2", "print(x)", "print(y)", "exit(1)"])


@MANY
def test_a_context_that_never_was(statek_app, facts, fitter):
    STATE["fails"] = True
    run(statek_app, facts, fitter, ["x = 1", "print(x)", "exit(1)"])


@MANY
@pytest.mark.parametrize(
    "keys",
    [
        {"len": 5},
        {"print": 5},
        {"x": 7},
        {"break_context": 5},
        {"_smart_call": 1},
        {"statek_ctx_get": 5},
        {5: 6},
    ],
    ids=str,
)
def test_names_in_a_context(statek_app, facts, fitter, keys):
    STATE["keys"] = keys
    lines = [
        "print(len('abc'))",
        "print(x)",
        "x = 8\nprint(x)",
        "print(x)",
        "print(break_context)",
        "exit(1)",
    ]
    run(statek_app, facts, fitter, lines)
