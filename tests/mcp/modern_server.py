"""A server made with the official SDK, which speaks the newest version of the protocol, as a program on stdio."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("modern")


@server.tool()
def late() -> str:
    """Come later."""
    return "here I am"


server.remove_tool("late")


@server.tool()
async def grow(context: Context) -> str:
    """Bring another tool."""
    server.add_tool(late)
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def storm(context: Context) -> str:
    """Tell of changes that are none, over and over."""
    for _ in range(300):
        await context.notify_tools_changed()
    return "calm"


@server.tool()
def table() -> dict[str, int]:
    """Return a structured value."""
    return {"rows": 2}


@server.tool()
def broken() -> str:
    """Fail."""
    raise ValueError("no luck")


if __name__ == "__main__":
    server.run()
