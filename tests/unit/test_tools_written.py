"""What a tool's Python code says of it: partials, callable objects, and the parameter for the context."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

import statek_sim
from statek_sim import text, tool_call
from statek_sim.agent.effects import ToolContext
from statek_sim.agent.effects import ToolContext as Renamed
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.tools.tool import tool_from
from statek_sim.errors import BadTool
from statek_sim.providers.scripted import ScriptedLLM
from tests.tables import table_test


def pay(amount: int, currency: str = "EUR") -> str:
    """Pay.

    Args:
        amount: In cents.
    """
    return f"{amount} {currency}"


class Till:
    """A till."""

    def __call__(self, amount: int) -> int:
        """Take money."""
        return amount


class Silent:
    """Says what it does for its class."""

    def __call__(self, amount: int) -> int:
        return amount


async def slow(amount: int, timing: ToolContext) -> str:
    """Take its time."""
    await timing.sleep(2)
    return f"{amount} at {timing.now()}"


def test_a_partial_with_a_name_is_a_tool_of_the_function_in_it() -> None:
    made = tool_from(partial(pay, currency="CHF"), name="pay_francs")
    assert (made.name, made.description) == ("pay_francs", "Pay.")
    assert made.parameters["properties"] == {
        "amount": {"type": "integer", "description": "In cents."},
        "currency": {"type": "string", "default": "CHF"},
    }
    assert made.run(amount=5) == "5 CHF"


def test_a_partial_that_gave_the_first_argument_asks_for_the_others() -> None:
    assert list(tool_from(partial(pay, 5), name="pay_five").parameters["properties"]) == ["currency"]  # type: ignore[arg-type]


@table_test(
    ("function", "description"),
    [(Till(), "Take money."), (partial(Till()), "Take money."), (Till().__call__, "Take money."),
     (Silent(), "Says what it does for its class.")],
)  # fmt: skip
def test_an_object_that_can_be_called_is_a_tool(function: Any, description: str) -> None:
    made = tool_from(function, name="take")
    assert made.description == description
    assert made.parameters["properties"] == {"amount": {"type": "integer"}}
    assert made.run(amount=5) == 5


def test_a_lambda_has_to_be_named() -> None:
    words = "has no name; create the tool with tool_from(..., name=...)"
    with pytest.raises(BadTool, match=rf"^<function .*<lambda> at 0x\w+> {re.escape(words)}$"):
        tool_from(lambda amount: amount)
    assert tool_from(lambda amount: amount, name="echo").name == "echo"


@pytest.mark.parametrize("tool", [slow, partial(slow), partial(partial(slow))])
def test_the_context_is_given_by_its_hint_whatever_the_name(tool: Any) -> None:
    made = tool_from(tool, name="slow")
    assert list(made.parameters["properties"]) == ["amount"]  # type: ignore[arg-type]
    agent = AgentHarness(ScriptedLLM([tool_call("slow", amount=3), text("done")]), tools=[made])
    assert str(agent.run("Work.").calls[0]["result"]).startswith("3 at ")


def test_the_context_is_found_behind_every_way_to_write_its_hint() -> None:
    def renamed(a: int, ctx: Renamed) -> None: ...
    def dotted(a: int, ctx: statek_sim.ToolContext) -> None: ...
    def optional(a: int, ctx: ToolContext | None = None) -> None: ...
    def evaluated(a: int, ctx: Any) -> None: ...

    evaluated.__annotations__["ctx"] = ToolContext
    for function in (renamed, dotted, optional, evaluated):
        assert list(tool_from(function).parameters["properties"]) == ["a"]  # type: ignore[arg-type]


def test_a_parameter_called_context_is_the_models_where_another_has_the_hint() -> None:
    def look(context: str, ctx: ToolContext) -> str:
        return f"{context} {ctx.now() >= 0}"

    made = tool_from(look)
    assert list(made.parameters["properties"]) == ["context"]  # type: ignore[arg-type]
    agent = AgentHarness(ScriptedLLM([tool_call("look", context="box"), text("done")]), tools=[made])
    assert agent.run("Work.").calls[0]["result"] == "box True"
