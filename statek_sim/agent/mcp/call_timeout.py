"""A call of a tool on a server, bounded in time. It needs no MCP SDK: scripted servers use it too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from statek_sim.agent.effects import ToolOutcome
from statek_sim.agent.mcp.results import McpFailure, call_of, outcome, silent
from statek_sim.agent.mcp.servers import McpServerSpec


async def in_time(
    spec: McpServerSpec, tool: str, calling: Awaitable[ToolOutcome], garbage: Callable[[], str]
) -> ToolOutcome:
    """Wait for a call as long as the server's bounds say; `garbage` is what it sent that nobody could read."""
    try:
        async with asyncio.timeout(spec.bounds.call) as limit:
            return await calling
    except McpFailure as failure:
        return outcome(failure)
    except TimeoutError:
        if not limit.expired():
            raise
        return outcome(silent(spec.name, call_of(tool), spec.bounds.call, garbage()))
