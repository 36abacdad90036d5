"""The tools that an MCP server lists: all pages of its list, each tool as a definition."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from statek_sim.agent.tools.mcp.definitions import Definition, definition_of
from statek_sim.agent.tools.mcp.failures import no_result
from statek_sim.agent.tools.mcp.servers import McpServerSpec


class Listing(Protocol):
    """What can be asked for a page of a list: a client of the SDK."""

    async def list_tools(self, *, cursor: str | None) -> Any:  # the SDK's page: `tools` and `next_cursor`
        """Return the page that begins at `cursor`."""


async def list_of(client: Listing, spec: McpServerSpec) -> tuple[Definition, ...]:
    """Return all pages of a server's list; `McpBadAnswer` for a list without an end."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(spec.bounds.pages):
        try:
            page = await client.list_tools(cursor=cursor)
        except (RuntimeError, ValidationError) as error:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise no_result(spec.name, "tools/list", reason) from error
        found += map(_definition, page.tools)
        if page.next_cursor is None:
            return tuple(found)
        if page.next_cursor == cursor:
            raise no_result(spec.name, "tools/list", f"the cursor {cursor!r} leads to itself")
        cursor = page.next_cursor
    raise no_result(spec.name, "tools/list", f"a list of more than {spec.bounds.pages} pages")


def _definition(tool: BaseModel) -> Definition:
    return definition_of(tool.model_dump(mode="json", by_alias=True, exclude_none=True))
