"""The tools of an MCP server as a registry has them, whatever the connection is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from statek_sim.agent.effects import ToolOutcome
from statek_sim.agent.tools.mcp.definitions import Definition
from statek_sim.agent.tools.mcp.servers import McpServerSpec
from statek_sim.agent.tools.tool import Tool, tool_of_schema
from statek_sim.values import JSON

NET: float = 1.0
"""Seconds that the harness waits longer than the connection, which has better words for what went wrong."""


class Connection(Protocol):
    """A server, real or scripted."""

    @property
    def spec(self) -> McpServerSpec:
        """Which one, and how long it may take."""

    @property
    def definitions(self) -> Sequence[Definition]:
        """The tools it listed last."""

    def changes(self) -> Sequence[Definition] | None:
        """Return its tools when they changed since this was asked last, else None."""

    async def call(self, tool: str, arguments: Mapping[str, JSON]) -> ToolOutcome:
        """Call a tool; everything that goes wrong is an outcome, by name."""


class McpSource:
    """A `ToolSource`: `registry.follow(McpSource(connection))`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """The server's name here."""
        return self._connection.spec.name

    @property
    def prefix(self) -> str | None:
        """What goes before its tools' names."""
        return self._connection.spec.prefix

    def tools(self) -> tuple[Tool, ...]:
        """Return its tools as they are now."""
        return tuple(self._tool(one) for one in self._connection.definitions)

    def changed(self) -> bool:
        """Return whether they changed since this was asked last."""
        return self._connection.changes() is not None

    def _tool(self, definition: Definition) -> Tool:
        connection, spec = self._connection, self._connection.spec

        async def run(**arguments: Any) -> ToolOutcome:
            return await connection.call(definition.name, arguments)

        return tool_of_schema(
            definition.name,
            definition.description,
            definition.parameters,
            run,
            tags=tuple(spec.tags),
            timeout=spec.bounds.call + NET,
        )
