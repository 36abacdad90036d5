"""An MCP server for tests: what it has, what goes wrong with it, what it was asked. Transports are shells around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.mcp.fault import McpFault as McpFault
    from statek_sim.mcp.fault import fault_from as fault_from
    from statek_sim.mcp.server import McpServer as McpServer

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "statek_sim.mcp.fault": (
            "McpFault",
            "fault_from",
        ),
        "statek_sim.mcp.server": ("McpServer",),
    },
)
