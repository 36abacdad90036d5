"""Scripted tools of engine two's scenarios: results as data, in order, with nothing made up and nothing left over."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from statek_sim.agent.effects import Ask, Delayed, ToolFunction
from statek_sim.agent.tools.tool import AfterCrash, Happened, Tool, tool_from, tool_of_schema
from statek_sim.backends.setup import load_attribute
from statek_sim.errors import BadScenario, BadTool, ScriptExhausted, UnusedResults
from statek_sim.mcp.fault import fault_from
from statek_sim.mcp.scripted import ScriptedConnection, served
from statek_sim.mcp.server import McpServer, ServedTool
from statek_sim.mcp.servers import Bounds, McpServerSpec, McpSource, Stdio
from statek_sim.scenario.agent import ServerText, ToolResultText, ToolText
from statek_sim.scenario.agent_checks import own_name, registered_name
from statek_sim.scenario.schema import Scenario
from statek_sim.values import JSON

_ERROR: Final = re.compile(r"([A-Z][A-Za-z0-9_]*): (.*)", re.DOTALL)


class ScriptedTools:
    """The tools of one run: they share a state that results set and show."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._state: dict[str, JSON] = {}
        self._lanes: dict[str, _Lane] = {}
        self._on_servers: dict[str, list[Tool]] = {name: [] for name in scenario.servers}
        self.tools = tuple(self._made())
        """The tools of the scenario's `tools`, under the names they are registered by, without those of `servers`."""
        self._servers = {name: self._server(name, text) for name, text in scenario.servers.items()}

    def _made(self) -> Iterator[Tool]:
        for name, text in self._scenario.tools.items():
            served_by = self._on_servers.get(text.server or "")
            code = _person if text.asks else self._code(name, text)
            try:
                made = tool_of_schema(
                    registered_name(name, text) if served_by is None else own_name(name, text),
                    text.description,
                    text.parameters,
                    code,
                    tags=text.tags,
                    timeout=text.timeout,
                )
            except BadTool as error:
                raise BadScenario(f"{self._place()}: {error}") from error
            if text.asks:
                made = replace(made, asks=Ask(text=text.asks, seconds=text.within))
            if text.access or text.sandboxed:
                made = replace(made, access=text.access, sandboxed=text.sandboxed)
            if text.after_crash != "ask":
                made = replace(made, after_crash=self._after_crash(name, text))
            if served_by is not None:
                served_by.append(made)
            else:
                yield made if text.server is None else replace(made, server=text.server)

    def _after_crash(self, name: str, text: ToolText) -> AfterCrash:
        match text.after_crash:
            case "happened":
                return lambda **arguments: Happened(self._lanes[name].last)
            case "did_not_happen":
                return lambda **arguments: None
            case _:
                return "again"

    def _server(self, name: str, text: ServerText) -> McpServer:
        faults = [fault_from(fault) for fault in text.faults]
        return McpServer(served(self._on_servers[name]), name=name, faults=faults, listed=text.listed)

    def served_tools(self) -> tuple[ServedTool, ...]:
        """Return all tools of the scenario as one server has them; those of several servers must differ in name."""
        on_servers = [tool for tools in self._on_servers.values() for tool in tools]
        return served([*self.tools, *on_servers])

    def sources(self) -> Iterator[McpSource]:
        """Yield a connection of its own to every server of the scenario."""
        for name, text in self._scenario.servers.items():
            bounds = Bounds(call=text.call, text=text.text, restarts=text.restarts)
            at = Stdio(command=name)
            spec = McpServerSpec(name=name, at=at, prefix=text.prefix, bounds=bounds)
            yield McpSource(ScriptedConnection(spec, self._servers[name]))

    def function(self, name: str) -> Tool:
        """Return the tool that the function `module:attribute` is."""
        found = load_attribute(self._scenario, name)
        if isinstance(found, Tool):
            return found
        if not callable(found):
            raise BadScenario(f"{self._place()}: {name!r} is no function")
        return tool_from(found)

    def check_finished(self) -> None:
        """Raise `UnusedResults` when results are left that no call asked for."""
        left = [reply for lane in self._lanes.values() for reply in lane.left()]
        for name, server in self._servers.items():
            left += [f"server {name} fault {fault}" for fault in server.faults.unused()]
        if left:
            raise UnusedResults(
                f"{len(left)} results or faults of scripted tools were never asked for: {'; '.join(left)}; "
                "take them out, or say `repeat: forever` where none is needed"
            )

    def _code(self, name: str, text: ToolText) -> ToolFunction:
        if text.call:
            found = load_attribute(self._scenario, text.call)
            if not callable(found):
                raise BadScenario(f"{self._place()}: tools.{name}.call: {text.call!r} is no function")
            code: ToolFunction = found
            return code
        results = text.results
        if not text.said("results"):
            end: dict[str, Any] = {"error": text.error} if text.said("error") else {"result": text.result}
            results = (ToolResultText(**end, takes=text.takes, repeat="forever"),)
        lane = self._lanes[name] = _Lane(name, results, exact=text.said("results"))
        return self._scripted(lane)

    def _scripted(self, lane: _Lane) -> Callable[..., object]:
        state = self._state

        def scripted(**arguments: JSON) -> object:
            entry = lane.take(arguments)
            error = _error(entry.error) if entry.said("error") else None
            value = None if error is not None else _filled(entry.result, arguments, state)
            lane.last = value
            state.update({key: _filled(item, arguments, state) for key, item in entry.sets.items()})
            if entry.takes:
                return Delayed(entry.takes, value, error)
            if error is not None:
                raise error
            return value

        return scripted

    def _place(self) -> str:
        return f"{self._scenario.path}:{self._scenario.line}: scenario {self._scenario.id!r}"


class _Lane:
    """The results of one tool that are still to be given."""

    def __init__(self, name: str, results: tuple[ToolResultText, ...], *, exact: bool) -> None:
        self._name = name
        self._exact = exact
        self._calls = 0
        self.last: object = None
        """What it gave last: what its work left behind outside."""
        self._left: list[list[Any]] = [
            [entry, None if entry.repeat == "forever" else int(entry.repeat), 0] for entry in results
        ]

    def take(self, arguments: Mapping[str, JSON]) -> ToolResultText:
        """Return the first result that is for these arguments."""
        self._calls += 1
        for slot in self._left:
            entry, times, given = slot
            if times is not None and given >= times:
                continue
            if entry.when is None or all(
                key in arguments and arguments[key] == value for key, value in entry.when.items()
            ):
                slot[2] += 1
                found: ToolResultText = entry
                return found
        raise ScriptExhausted(
            f"tool {self._name!r} was called for the {self._calls}. time, with {json.dumps(dict(arguments))}, and "
            "none of its results is for that; add one to `results`, or say `repeat: forever`"
        )

    def left(self) -> Iterator[str]:
        """Yield what was given too seldom; of results that are given forever, once is enough."""
        for number, (_, times, given) in enumerate(self._left, start=1):
            if self._exact and given < (1 if times is None else times):
                yield f"{self._name} result {number}"


def _person(**_: JSON) -> NoReturn:
    raise AssertionError("a tool that asks a person has no code to run")


def _filled(value: JSON, arguments: Mapping[str, JSON], state: Mapping[str, JSON]) -> JSON:
    """Return a result with its references filled in; what is not there is null."""
    if isinstance(value, list):
        return [_filled(item, arguments, state) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, name), *_ = value.items()
        if key == "$argument":
            return arguments.get(str(name))
        if key == "$state":
            return state.get(str(name))
    return {key: _filled(item, arguments, state) for key, item in value.items()}


def _error(text: str) -> Exception:
    """Return the exception that a scripted error is: of the class it names, else a RuntimeError."""
    found = _ERROR.fullmatch(text)
    if found is None:
        return RuntimeError(text)
    made: Exception = type(found[1], (Exception,), {})(found[2])
    return made
