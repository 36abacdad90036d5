"""What an agent made in Python refuses when it is made, with what was meant."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.steps.enforcement import Step, StepPlan
from statek_sim.agent.tools.registry import Registry
from statek_sim.errors import BadInput, BadTool


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return city


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (["get_weather"], "'get_weather' is no tool; expected a function, or a Tool"),
        ([None], "None is no tool; expected a function, or a Tool"),
        ("get_weather", "tools is 'get_weather'; expected a list of functions or Tools"),
        (get_weather, "expected a list of functions or Tools"),
        ([partial(get_weather, "Rome")], "has no name of its own; make it a tool with tool_from(..., name=...)"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_refused_with_what_was_expected(tools: Any, said: str) -> None:
    with pytest.raises(BadTool) as caught:
        AgentHarness(tools=tools)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["get_wether"], "steps: 'get_wether' is no tool of this agent. Did you mean 'get_weather'?"),
        ([Step(tool="get_weather", after=("loook",))], "after: 'loook' is no tool of this agent. Known: get_weather"),
        (StepPlan(helpers=("get_weathr",)), "steps: helpers: 'get_weathr'"),
        (StepPlan(terminal=("submit",)), "steps: terminal: 'submit'"),
    ],
)  # fmt: skip
def test_a_step_that_names_no_tool_is_refused(steps: Any, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        AgentHarness(tools=[get_weather], steps=steps)
    assert said in str(caught.value)


def test_a_registry_may_get_its_tools_until_the_run_begins() -> None:
    registry = Registry()
    agent = AgentHarness(tools=registry, steps=["get_weather"])
    with pytest.raises(BadInput, match="There is none"):
        agent.begin("Go")
    registry.register(get_weather)
    assert agent.begin("Go").status == "READY"
