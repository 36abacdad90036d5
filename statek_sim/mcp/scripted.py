"""An MCP server without a process: its tools and faults, in virtual time.

Its faults are those of the server for tests (`statek_sim.mcp`), and a model sees the same as over a connection to that
server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from statek_sim.agent.effects import Invocation, ToolCall, ToolOutcome
from statek_sim.agent.execution import Context, limited, started
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool, code_of
from statek_sim.agent.tools.type_hints import problems_of
from statek_sim.mcp.fault import LIST, McpFault
from statek_sim.mcp.server import CallResult, McpServer, ServedTool, text_result
from statek_sim.mcp.servers import (
    Definition,
    McpFailure,
    McpServerSpec,
    bad_answer,
    call_of,
    call_within_bounds,
    definition_of,
    died,
    gone,
    refused,
    returned,
    timed_out,
)
from statek_sim.mcp.session import INTERNAL_ERROR, Message, Session
from statek_sim.values import JSON

MALFORMED: Final = "1 validation error for CallToolResult"
"""The SDK's error for a malformed result."""


class ScriptedConnection:
    """A `Connection` to an `McpServer` in the same process. Time is that of the loop in which a call runs.

    A server that died restarts in its initial state, as often as restarts are allowed.
    """

    def __init__(self, spec: McpServerSpec, server: McpServer) -> None:
        self.spec = spec
        self.restarts = 0
        self._server = server
        self._first = tuple(tool.name for tool in server.listed)
        self._dead = False
        self._garbage = ""
        self._news = False
        self.definitions = self._list()
        self._forget = server.on_change(self._list_changed)

    def changes(self) -> tuple[Definition, ...] | None:
        """Return the server's tools if they changed since the last call, else None."""
        news, self._news = self._news, False
        return self.definitions if news else None

    def _list_changed(self) -> None:
        try:
            found = self._list()
        except McpFailure:
            return  # as over a wire: an unreadable list leaves the old one
        self._news = self._news or found != self.definitions
        self.definitions = found

    def _list(self) -> tuple[Definition, ...]:
        fault = self._server.faults.strike(LIST)
        if fault is not None:
            raise _listing(self.spec, fault)
        return tuple(definition_of(tool.listed()) for tool in self._server.listed)

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; every failure is an outcome with a type."""
        return await call_within_bounds(self.spec, tool, self._call(tool, arguments), lambda: self._garbage)

    async def _call(self, name: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        self._start_again()
        lines: list[str] = []

        async def take(line: str) -> None:
            lines.append(line)

        def die() -> None:
            self._dead = True
            raise died(self.spec.name, call_of(name))

        session = Session(self._server, announce=_nobody_hears, die=die)
        try:
            call: Message = {
                "id": 1,
                "method": "tools/call",
                "params": {"name": name, "arguments": dict(arguments)},
            }
            await session.receive(call, take)
        finally:
            session.close()
        try:
            answer: Message = json.loads(lines[-1])
        except ValueError:
            self._garbage = self._garbage or "no JSON"
            await asyncio.get_running_loop().create_future()  # no server answers this
            raise
        return self._outcome(answer, call_of(name))

    def _outcome(self, answer: Message, doing: str) -> ToolOutcome:
        failure, found = answer.get("error"), answer.get("result")
        if isinstance(failure, dict):
            raise refused(self.spec.name, doing, int(str(failure["code"])), str(failure["message"]))
        if not isinstance(found, dict) or not isinstance(content := found.get("content"), list):
            raise bad_answer(self.spec.name, doing, MALFORMED)
        blocks = [block for block in content if isinstance(block, dict)]
        structured = found.get("structuredContent")
        return returned(
            blocks,
            structured if isinstance(structured, dict) else None,
            is_error=bool(found.get("isError")),
            most=self.spec.bounds.text,
        )

    def _start_again(self) -> None:
        if not self._dead:
            return
        if self.restarts >= self.spec.bounds.restarts:
            raise gone(self.spec.name, self.restarts)
        self.restarts += 1
        self._dead, self._garbage = False, ""
        self._server.list_only(self._first)


async def _nobody_hears(line: str) -> None:
    """Drop messages that concern no call: `on_change` reports changed lists."""


def _listing(spec: McpServerSpec, fault: McpFault) -> McpFailure:
    """Return the failure that a fault causes while a client connects or lists tools, which takes no virtual time."""
    match fault.kind:
        case "dies":
            return died(spec.name, "the handshake")
        case "loops":
            return bad_answer(spec.name, LIST, "the cursor '0' leads to itself")
        case "malformed" | "no-json":
            return bad_answer(spec.name, LIST, "1 validation error for ListToolsResult")
        case "refuses":
            return refused(spec.name, "the handshake", INTERNAL_ERROR, fault.value or "Internal error")
        case _:
            return timed_out(spec.name, "the handshake", spec.bounds.connect)


def served(registry: Registry | Iterable[Tool]) -> tuple[ServedTool, ...]:
    """Return tools as they are served: with their names, schemas and timeouts.

    Arguments that do not fit are refused as in the loop, as an error result: models correct those.
    """
    tools = registry.list() if isinstance(registry, Registry) else tuple(registry)
    return tuple(_served(tool) for tool in tools)


def _served(tool: Tool) -> ServedTool:
    check = ArgumentCheck(tool.name, tool.parameters)
    conversions = code_of(tool.run).conversions

    async def run(arguments: Mapping[str, JSON]) -> CallResult:
        problems = check.check(arguments, coerce=False).problems or problems_of(arguments, conversions)
        if problems:
            return text_result(f"Error: {'; '.join(problems)}", is_error=True)
        one = Invocation(ToolCall("", tool.name, arguments), tool.run, tool.timeout)
        found = await limited(one, partial(started, one, Context(asyncio.get_running_loop().time)))
        return text_result(found.text, is_error=found.failed)

    return ServedTool(name=tool.name, description=tool.description, input_schema=tool.parameters, run=run)
