"""What an agent made in Python refuses when it is made, with what was meant."""

from __future__ import annotations

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
from tests.says import line_with
from tests.tables import table_test


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return city


@table_test(
    ("tools", "facts"),
    [
        (["get_weather"], ("'get_weather'", "function", "Tool")),
        ([None], ("None", "function", "Tool")),
        ("get_weather", ("tools", "'get_weather'", "list", "Tools")),
        (get_weather, ("list", "Tools")),
        ([partial(get_weather, "Rome")], ("no name", "tool_from(..., name=...)")),
        ([lambda city: city], ("no name", "tool_from(..., name=...)")),
    ],
)
def test_what_is_no_tool_is_refused_with_what_was_expected(tools: Any, facts: tuple[str, ...]) -> None:
    with pytest.raises(BadTool, match=line_with(*facts)):
        AgentHarness(tools=tools)


@pytest.mark.parametrize(
    ("steps", "facts"),
    [
        (["get_wether"], "steps: ; 'get_wether' is not a tool; 'get_weather'?"),
        ([Step(tool="get_weather", after=("loook",))], "after: ; 'loook' is not a tool; Known: get_weather"),
        (StepPlan(helpers=("get_weathr",)), "steps: helpers: ; 'get_weathr' is not a tool"),
    ],
)
def test_a_step_that_names_no_tool_is_refused(steps: Any, facts: str) -> None:
    with pytest.raises(BadInput, match=line_with(*facts.split("; "))):
        AgentHarness(tools=[get_weather], steps=steps)


def test_an_api_that_nobody_knows_is_told_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"^unknown api 'GEMINI'; expected one of .*CLAUDE.*VERTEXAI"):
        AgentHarness(tools=[get_weather], api="GEMINI")


def submit(text: str) -> str:
    """Submit a text."""
    return text


@pytest.mark.parametrize(
    ("choice", "steps"),
    [
        (Choice(names=("submit",)), ["get_weather"]),
        (Choice(task="writing"), [Step(tool="submit", after=("get_weather",))]),
    ],
    ids=["names", "after, by task"],
)
def test_an_offer_that_never_has_a_step_is_refused(choice: Choice, steps: Any) -> None:
    with pytest.raises(BadInput, match=line_with("agent 'agent'", "'get_weather'", "never offered")):
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
    with pytest.raises(BadInput, match=line_with("task", repr(task), "expected a string")):
        harness.run(task)
