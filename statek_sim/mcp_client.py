"""MCP server tools for an agent (docs/mcp.md). MCP servers for tests are in `statek_sim.mcp`.

`McpSource` adds a server's tools, described by `McpServerSpec`, to a `Registry`. `McpConnection` connects to real
servers and needs the extra `mcp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.mcp.client import Bounds as Bounds
    from statek_sim.mcp.client import Connection as Connection
    from statek_sim.mcp.client import Http as Http
    from statek_sim.mcp.client import McpFailure as McpFailure
    from statek_sim.mcp.client import McpServerSpec as McpServerSpec
    from statek_sim.mcp.client import McpSource as McpSource
    from statek_sim.mcp.client import Stdio as Stdio
    from statek_sim.mcp.connection import McpConnection as McpConnection
    from statek_sim.mcp.scripted import ScriptedConnection as ScriptedConnection
    from statek_sim.mcp.scripted import served as served

__all__, __getattr__, __dir__ = lazy_exports(__name__)
