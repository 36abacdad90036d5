"""MCP servers for tests, with tools and faults, and an agent's MCP client.

Servers: `server` tools and the journal · `primitives` resources and prompts · `fault` injected faults · `session`
JSON-RPC with one client · `transports` stdio and HTTP.

Clients: `client` an agent's servers, their tools, and results and failures as a model sees them · `connection`
connections to real servers, through the official SDK · `scripted` connections to an `McpServer`, in virtual time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.mcp.fault import McpFault as McpFault
    from statek_sim.mcp.fault import fault_from as fault_from
    from statek_sim.mcp.primitives import ServedPrompt as ServedPrompt
    from statek_sim.mcp.primitives import ServedResource as ServedResource
    from statek_sim.mcp.server import McpServer as McpServer

__all__, __getattr__, __dir__ = lazy_exports(__name__)
