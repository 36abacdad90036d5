"""Tools of the application's own that every agent has, and some that none may call."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import find_tools, tool
from statek.agents import SupervisedAgent
from statek.chat_style import ChatStyle
from statek.prompt_config import make_system_prompt

from statek_sim import tool_call


@db0.memo(singleton=True)
class Rings:
    def __init__(self):
        self.rung = []


@tool(system=True)
def ring(who: str, **kwargs):
    """Ring a bell.

    Args:
        who (required): For whom.
    """
    Rings().rung.append(who)
    return f"rang for {who}"


@tool(system=True, hidden=True)
def unlock(**kwargs):
    """Open the door."""
    Rings().rung.append("unlocked")
    return "open"


@tool(hidden=True)
def secret(**kwargs):
    """Tell a secret."""
    return "42"


@tool(system=True, target=[ChatStyle.DIRECT])
def wave(**kwargs):
    """Wave."""
    return "waved"


@tool
def shout(text: str, **kwargs):
    """Shout."""
    return text.upper()


@tool
def never_given(**kwargs):
    """Belongs to nobody."""


def create(*tools, **metadata):
    return SupervisedAgent(
        role="porter",
        _system_prompt=make_system_prompt("You open doors."),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


MANY = pytest.mark.statek(
    limits={"max_exceptions": 20, "max_consecutive_exceptions": 20, "max_turns": 20, "max_token_usage": None}
)


@MANY
def test_system_tools_are_there_without_being_given(statek_app, facts):
    statek_app.script(porter=["print(ring('Ada'))", "wave()", "shout('x')", "never_given()", "exit(1)"])
    statek_app.create_job(create())
    statek_app.run()
    facts["rung"] = list(Rings().rung)


@MANY
def test_hidden_tools_are_refused(statek_app, facts):
    statek_app.script(
        porter=[
            "unlock()",
            "f = unlock",
            "secret()",
            "print(ring('x'))",
            tool_call("unlock"),
            tool_call("secret"),
            "exit(1)",
        ]
    )
    statek_app.create_job(create(shout, secret))
    statek_app.run()
    facts["rung"] = list(Rings().rung)


@MANY
def test_a_hidden_tool_of_another_agent_is_refused_by_name(statek_app, facts):
    statek_app.script(porter=["secret()", "secret = 5\nprint(secret)", "print(shout('a'))", "exit(1)"])
    statek_app.create_job(create(shout))
    statek_app.run()


@MANY
def test_hidden_warmup_may_call_hidden_tools(statek_app, facts):
    agent = create(shout)
    agent.update_warmup_def("#STATEK: hidden = True\nunlock()\n# ----------\nring('me')")
    statek_app.script(porter=["exit(1)"])
    statek_app.create_job(agent)
    statek_app.run()
    facts["rung"] = list(Rings().rung)
    facts.attempt("hidden", lambda: agent.warmup_def.hidden)


@pytest.mark.parametrize("scope", ["+unlock", "+never_given"])
def test_what_cannot_be_offered(statek_app, facts, scope):
    statek_app.create_job(create(shout, secret, LLM_TOOLS_SCOPE=scope))
    statek_app.run()


@pytest.mark.parametrize("scope", ["SYSTEM", "APPLICATION", "ALL", "+ring", "ALL -ring", "SYSTEM +shout"])
def test_what_is_offered(statek_app, facts, scope):
    statek_app.script(porter=["exit(1)"])
    statek_app.create_job(create(shout, secret, LLM_TOOLS_SCOPE=scope))
    statek_app.run()
    facts["offered"] = [
        [tool["function"]["name"] for tool in request.tools or ()] for request in statek_app.requests
    ]


@MANY
def test_a_model_calls_a_system_tool(statek_app, facts):
    statek_app.script(porter=[tool_call("ring", who="Bob"), "exit(1)"])
    statek_app.create_job(create(shout, LLM_TOOLS_SCOPE="SYSTEM"))
    statek_app.run()
    facts["rung"] = list(Rings().rung)


def test_registered_tools_are_found(statek_app, facts):
    own = {"ring", "unlock", "secret", "wave", "shout", "never_given"}
    for scope in (None, "SYSTEM", "APPLICATION"):
        facts[f"{scope}"] = [f.__name__ for f in find_tools(scope) if f.__name__ in own]
    facts["hidden"] = [f.__name__ for f in find_tools(include_hidden=True) if f.__name__ in own]
    facts["direct"] = [f.__name__ for f in find_tools(chat_style=ChatStyle.MARKDOWN) if f.__name__ in own]
    facts["attributes"] = [
        ring.tool_system,
        ring.tool_hidden,
        unlock.tool_hidden,
        shout.tool_system,
        str(wave.tool_target is None),
    ]
