"""From what a person names to an MCP server: tools of a program, or the scripted ones of a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from statek_sim.agent.mcp.scripted import served
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool
from statek_sim.backends.agent_tools import ScriptedTools
from statek_sim.backends.setup import attribute_at
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.mcp.server import ServedTool
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario

_EXPECTED: Final = "a Registry, or a list of functions, Tools and ServedTools"


def served_tools(source: str, scenario: str | None = None) -> tuple[ServedTool, ...]:
    """Return the tools that `module:attribute` or a scenario file names, as they are served.

    The attribute is a `Registry`, a list of functions, `Tool`s or `ServedTool`s, or a function that returns one. Of a
    file with several scenarios `scenario` says which one.
    """
    if source.endswith((".yaml", ".yml")):
        return _scripted(_chosen(Path(source), scenario))
    if ":" not in source:
        raise BadInput(f"{source!r}: expected module:attribute, or a scenario file")
    found = attribute_at("mcp", source)
    if callable(found) and not isinstance(found, Iterable):
        try:
            found = found()
        except Exception as error:  # the user's code
            raise BadInput(
                f"{source!r} is a function that fails when it is called: {type(error).__name__}: {error}; "
                f"expected {_EXPECTED}, or a function without arguments that returns one"
            ) from error
    return tools_as_served(found, source)


def tools_as_served(found: object, source: str = "tools") -> tuple[ServedTool, ...]:
    """Return a `Registry`, or a list of functions, `Tool`s and `ServedTool`s, as tools that are served.

    `BadInput` for anything else, with `source`, where it comes from.
    """
    if isinstance(found, Registry):
        return served(found)
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise BadInput(f"{source!r} is a {type(found).__name__}, expected {_EXPECTED}")
    made: list[ServedTool] = []
    for tool in found:
        if isinstance(tool, ServedTool):
            made.append(tool)
        elif isinstance(tool, Tool) or callable(tool):
            made += served(Registry([tool]))
        else:
            raise BadInput(f"{source!r} holds {tool!r}, expected {_EXPECTED}")
    return tuple(made)


def _chosen(path: Path, wanted: str | None) -> Scenario:
    scenarios = load_or_fail([path])
    ids = [scenario.id for scenario in scenarios]
    if wanted is None and len(scenarios) == 1:
        chosen = scenarios[0]
    else:
        found = next((scenario for scenario in scenarios if scenario.id == wanted), None)
        if found is None:
            problem = f"{path} has {len(ids)} scenarios; --scenario names one of them: {', '.join(ids)}."
            raise BadInput((problem + (suggestion(wanted, ids) if wanted else "")).removesuffix("."))
        chosen = found
    if chosen.engine != "agent":
        raise BadInput(
            f"{path}:{chosen.line}: scenario {chosen.id!r} is for engine statek; only engine agent has tools"
        )
    return chosen


def _scripted(scenario: Scenario) -> tuple[ServedTool, ...]:
    return ScriptedTools(scenario).served_tools()
