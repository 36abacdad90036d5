"""Connections to an `McpServer` in the same process, in virtual time.

A model sees the same results and failures as with a real connection to that server.
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
from statek_sim.mcp.client import (
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
from statek_sim.mcp.fault import LIST, McpFault
from statek_sim.mcp.server import CallResult, McpServer, ServedTool, text_result
from statek_sim.mcp.session import INTERNAL_ERROR, Message, Session
from statek_sim.values import JSON

MALFORMED: Final = "1 validation error for CallToolResult"
"""The first line of the SDK's error message for a malformed result."""


class ScriptedConnection:
    """A `Connection` to an `McpServer` in the same process; calls take time on their event loop.

    A server that died is restarted in its initial state, at most `Bounds.restarts` times.
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
        """Return the server's tools if the list changed since this method was last called, else None."""
        news, self._news = self._news, False
        return self.definitions if news else None

    def _list_changed(self) -> None:
        try:
            found = self._list()
        except McpFailure:
            return  # as with a real connection, the previous list stays
        self._news = self._news or found != self.definitions
        self.definitions = found

    def _list(self) -> tuple[Definition, ...]:
        fault = self._server.faults.strike(LIST)
        if fault is not None:
            raise _listing(self.spec, fault)
        return tuple(definition_of(tool.listed()) for tool in self._server.listed)

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; a failure is returned as an outcome that names its type, such as `McpTimedOut`."""
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
            await asyncio.get_running_loop().create_future()  # wait for the timeout of the call
            raise
        return self._outcome(answer, call_of(name))

    def _outcome(self, answer: Message, doing: str) -> ToolOutcome:
        failure, found = answer.get("error"), answer.get("result")
        if isinstance(failure, dict):
            raise refused(self.spec.name, doing, int(str(failure["code"])), str(failure["message"]))
        if not isinstance(found, dict) or not isinstance(content := found.get("content"), list):
            raise bad_answer(self.spec.name, doing, MALFORMED)
        blocks = [block for block in content if isinstance(block, dict)]
        return returned(blocks, None, is_error=bool(found.get("isError")), most=self.spec.bounds.text)

    def _start_again(self) -> None:
        if not self._dead:
            return
        if self.restarts >= self.spec.bounds.restarts:
            raise gone(self.spec.name, self.restarts)
        self.restarts += 1
        self._dead, self._garbage = False, ""
        self._server.list_only(self._first)


async def _nobody_hears(line: str) -> None:
    """Drop a notification, because `on_change` already reports changed lists."""


def _listing(spec: McpServerSpec, fault: McpFault) -> McpFailure:
    """Return the failure caused by a fault on `tools/list`; listing tools takes no virtual time."""
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
    """Return an agent's tools as MCP server tools, with their names, schemas and timeouts.

    A call with invalid arguments gets an error result, as in the agent's own loop, so that the model can correct it.
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
