"""A registry's tools as an MCP server has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from statek_sim.agent.effects import Invocation, ToolCall
from statek_sim.agent.execution import Context, limited, started
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.agent.tools.hinted import problems_of
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool, code_of
from statek_sim.mcp.tool import Asking, CallResult, ServedTool, text_result
from statek_sim.values import JSON


def served(registry: Registry | Iterable[Tool]) -> tuple[ServedTool, ...]:
    """Return tools as they are served: with their names, schemas and timeouts.

    Arguments that do not fit are refused as the loop refuses them, as a result that is an error: models mend those.
    """
    tools = registry.list() if isinstance(registry, Registry) else tuple(registry)
    return tuple(_served(tool) for tool in tools)


def _served(tool: Tool) -> ServedTool:
    check = ArgumentCheck(tool.name, tool.parameters)
    conversions = code_of(tool.run).conversions

    async def run(arguments: Mapping[str, JSON], asking: Asking) -> CallResult:
        problems = check.check(arguments, coerce=False).problems or problems_of(arguments, conversions)
        if problems:
            return text_result(f"Error: {'; '.join(problems)}", is_error=True)
        one = Invocation(ToolCall("", tool.name, arguments), tool.run, tool.timeout)
        found = await limited(one, partial(started, one, Context(asking.now, asking.sleep)))
        return text_result(found.text, is_error=found.failed)

    return ServedTool(name=tool.name, description=tool.description, input_schema=tool.parameters, run=run)
