"""What an agent made in Python refuses when it is made, with what was meant."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from statek_sim.agent.effects import Choice, Parts
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.agent.tools.registry import Registry
from statek_sim.errors import BadInput, BadTool
from statek_sim.providers.script import text
from statek_sim.providers.scripted import ScriptedLLM
from tests.tables import table_test


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return city


@table_test(
    ("tools", "said"),
    [
        (["get_weather"], "'get_weather' is not a tool; expected a function or a Tool"),
        ([None], "None is not a tool; expected a function or a Tool"),
        ("get_weather", "tools is 'get_weather'; expected a list of functions or Tools"),
        (get_weather, "expected a list of functions or Tools"),
        ([partial(get_weather, "Rome")], "has no name; create the tool with tool_from(..., name=...)"),
        ([lambda city: city], "has no name; create the tool with tool_from(..., name=...)"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_refused_with_what_was_expected(tools: Any, said: str) -> None:
    with pytest.raises(BadTool) as caught:
        AgentHarness(tools=tools)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["get_wether"], "steps: 'get_wether' is not a tool of this agent. Did you mean 'get_weather'?"),
        ([Step(tool="get_weather", after=("loook",))], "after: 'loook' is not a tool of this agent. "
            "Known: get_weather"),
        (StepPlan(helpers=("get_weathr",)), "steps: helpers: 'get_weathr'"),
    ],
)  # fmt: skip
def test_a_step_that_names_no_tool_is_refused(steps: Any, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        AgentHarness(tools=[get_weather], steps=steps)
    assert said in str(caught.value)


def test_an_api_that_nobody_knows_is_told_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"^unknown api 'GEMINI'; expected one of .*CLAUDE.*VERTEXAI"):
        AgentHarness(tools=[get_weather], api="GEMINI")


def submit(text: str) -> str:
    """Submit a text."""
    return text


@pytest.mark.parametrize(
    ("choice", "steps", "why"),
    [
        (Choice(names=("submit",)), ["get_weather"], "tool 'get_weather' is required but never offered"),
        (
            Choice(task="writing"),
            [Step(tool="submit", after=("get_weather",))],
            "tool 'get_weather' is required but never offered",
        ),
    ],
    ids=["names", "after, by task"],
)  # fmt: skip
def test_an_offer_that_never_has_a_step_is_refused(choice: Choice, steps: Any, why: str) -> None:
    with pytest.raises(BadInput, match=f"^agent 'agent': {why}"):
        AgentHarness(
            tools=[get_weather, submit],
            steps=steps,
            choice=choice,
            task_types={"writing": ["submit"]},
        )


def test_an_offer_may_lack_steps_where_a_part_chooses_or_none_is_required() -> None:
    choice = Choice(names=("submit",))
    chosen = AgentHarness(
        tools=[get_weather, submit], steps=["get_weather"], choice=choice, parts=Parts(chooser=lambda _: None)
    )
    optional = AgentHarness(
        tools=[get_weather, submit], steps=[Step(tool="get_weather", required=False)], choice=choice
    )
    assert {agent.begin("Go").status for agent in (chosen, optional)} == {"READY"}


def test_a_registry_may_get_its_tools_until_the_run_begins() -> None:
    registry = Registry()
    agent = AgentHarness(tools=registry, steps=["get_weather"])
    with pytest.raises(BadInput, match="None are defined"):
        agent.begin("Go")
    registry.register(get_weather)
    assert agent.begin("Go").status == "READY"


@table_test("task", [None, 3, ["Look."], b"Look."])
def test_a_task_that_is_no_text_is_sent_to_nobody(task: Any) -> None:
    harness = AgentHarness(ScriptedLLM([text("done")]), tools=[get_weather])
    with pytest.raises(BadInput, match=rf"^task is {re.escape(repr(task))}; expected a string$"):
        harness.run(task)
